//! Parses integers as Go's `strconv.ParseInt`, `ParseUint` and `Atoi` in base ten.

use std::fmt;
use std::num::IntErrorKind;

use super::quote;

/// Returns the result of `ParseInt(text, 10, 64)`; None for an error.
#[must_use]
pub fn parse_int(text: &str) -> Option<i64> {
    // Rust accepts the same texts as Go: an optional sign and digits, no underscores.
    text.parse().ok()
}

/// Returns the result of `ParseUint(text, 10, 64)`, which accepts no sign; None for an error.
#[must_use]
pub fn parse_uint(text: &str) -> Option<u64> {
    if text.starts_with('+') { None } else { text.parse().ok() }
}

/// Why a text is not a number: Go's `NumError`, with its message `strconv.Atoi: parsing "x": invalid syntax`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumberError {
    function: &'static str,
    text: String,
    /// Whether it is a number that does not fit.
    pub is_out_of_range: bool,
}

impl fmt::Display for NumberError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cause = if self.is_out_of_range { "value out of range" } else { "invalid syntax" };
        write!(f, "strconv.{}: parsing {}: {cause}", self.function, quote(&self.text))
    }
}

impl std::error::Error for NumberError {}

/// Returns the result of `Atoi`.
///
/// # Errors
/// When the text is not a number, or does not fit in 64 bits.
pub fn atoi(text: &str) -> Result<i64, NumberError> {
    signed("Atoi", text)
}

fn signed(function: &'static str, text: &str) -> Result<i64, NumberError> {
    text.parse::<i64>().map_err(|error| NumberError {
        function,
        text: text.to_owned(),
        is_out_of_range: matches!(error.kind(), IntErrorKind::PosOverflow | IntErrorKind::NegOverflow),
    })
}

/// Returns the result of `ParseInt(text, 10, 64)`, with Go's error.
///
/// ```
/// use admit_apimachinery::go::integer::parse_int_or_error;
///
/// assert_eq!(parse_int_or_error("-5"), Ok(-5));
/// let error = parse_int_or_error("9223372036854775808").unwrap_err();
/// assert_eq!(error.to_string(), r#"strconv.ParseInt: parsing "9223372036854775808": value out of range"#);
/// ```
///
/// # Errors
/// When the text is not a number, or does not fit in 64 bits.
pub fn parse_int_or_error(text: &str) -> Result<i64, NumberError> {
    signed("ParseInt", text)
}

/// Returns the result of `ParseUint(text, 10, 64)`, with Go's error.
///
/// # Errors
/// When the text is not a number, or does not fit in 64 bits.
pub fn parse_uint_or_error(text: &str) -> Result<u64, NumberError> {
    parse_uint(text).ok_or_else(|| NumberError {
        function: "ParseUint",
        text: text.to_owned(),
        is_out_of_range: !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs() {
        assert_eq!((parse_int("+5"), parse_int("-0"), parse_int("1_0")), (Some(5), Some(0), None));
        assert_eq!((parse_uint("+5"), parse_uint("-5"), parse_uint("5")), (None, None, Some(5)));
        assert_eq!(atoi("x").unwrap_err().to_string(), r#"strconv.Atoi: parsing "x": invalid syntax"#);
    }
}
