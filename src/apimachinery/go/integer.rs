//! `strconv.ParseInt`, `ParseUint` and `Atoi` in base ten.

use std::num::IntErrorKind;

use super::quote;

/// `ParseInt(text, 10, 64)`.
#[must_use]
pub fn parse_int(text: &str) -> Option<i64> {
    // Rust accepts the same texts as Go: an optional sign and digits, no underscores.
    text.parse().ok()
}

/// `ParseUint(text, 10, 64)`, which knows no sign.
#[must_use]
pub fn parse_uint(text: &str) -> Option<u64> {
    if text.starts_with('+') { None } else { text.parse().ok() }
}

/// `Atoi`.
///
/// # Errors
/// Go's text: `strconv.Atoi: parsing "x": invalid syntax`.
pub fn atoi(text: &str) -> Result<i64, String> {
    text.parse::<i64>().map_err(|error| {
        let cause = match error.kind() {
            IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
            _ => "invalid syntax",
        };
        format!("strconv.Atoi: parsing {}: {cause}", quote(text))
    })
}

/// `ParseUint(text, 10, 64)`.
///
/// # Errors
/// Go's text: `strconv.ParseUint: parsing "x": invalid syntax`.
pub fn parse_uint_or_error(text: &str) -> Result<u64, String> {
    parse_uint(text).ok_or_else(|| {
        let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let cause = if is_number { "value out of range" } else { "invalid syntax" };
        format!("strconv.ParseUint: parsing {}: {cause}", quote(text))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs() {
        assert_eq!((parse_int("+5"), parse_int("-0"), parse_int("1_0")), (Some(5), Some(0), None));
        assert_eq!((parse_uint("+5"), parse_uint("-5"), parse_uint("5")), (None, None, Some(5)));
        assert_eq!(atoi("x").unwrap_err(), r#"strconv.Atoi: parsing "x": invalid syntax"#);
    }
}
