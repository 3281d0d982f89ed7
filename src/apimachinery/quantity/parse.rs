//! Parses quantities, as tolerantly as Kubernetes (`+` is zero) and with its limits (nothing finer than nano; binary amounts end
//! at the largest 64-bit integer).

use super::QuantityError;
use super::amount::{Amount, Format, Quantity};
use super::digits::Digits;

/// The smallest power of ten.
const NANO: i32 = -9;
/// The most decimal digits of a small amount.
const SMALL_DIGITS: i32 = 18;
/// The largest power of ten of a big number: it would be written with that many digits.
const GREATEST_EXPONENT: i32 = 10_000;

/// The parts of a quantity's text.
struct Parts<'t> {
    negative: bool,
    /// The digits before the point without leading zeros; `0` if there are none.
    whole: &'t str,
    fraction: &'t str,
    /// Whether there is any digit, including leading zeros.
    has_digits: bool,
    suffix: &'t str,
}

#[derive(Clone, Copy)]
enum Base {
    Ten,
    Two,
}

impl<'a> Quantity<'a> {
    /// Parses a quantity.
    ///
    /// ```
    /// use admit_apimachinery::quantity::Quantity;
    ///
    /// assert_eq!(Quantity::parse("0.5Gi").map(|read| read.to_string()).as_deref(), Ok("512Mi"));
    /// ```
    ///
    /// # Errors
    /// When a part of the text is invalid.
    pub fn parse(text: &'a str) -> Result<Self, QuantityError> {
        if text.is_empty() {
            return Err(QuantityError::Form);
        }
        let parts = split(text).ok_or(QuantityError::Form)?;
        let (base, exponent, format) = suffix(parts.suffix).ok_or(QuantityError::Suffix)?;
        match parse_small(&parts, base, exponent) {
            Some(amount) => {
                let text = is_canonical(&parts, exponent, format).then_some(text);
                Ok(Quantity { amount, format, text })
            }
            None => parse_big(&parts, base, exponent, format),
        }
    }
}

fn split(text: &str) -> Option<Parts<'_>> {
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let stripped = unsigned.trim_start_matches('0');
    let (whole, rest) = split_digits(stripped);
    let (fraction, suffix) = match rest.strip_prefix('.') {
        Some(rest) => split_digits(rest),
        None => ("", rest),
    };
    let has_digits =
        unsigned.starts_with('0') || !whole.is_empty() || !fraction.is_empty() || unsigned.is_empty();
    let whole = if whole.is_empty() { "0" } else { whole };
    let digits = suffix.trim_start_matches(['e', 'E', 'i', 'n', 'u', 'm', 'k', 'K', 'M', 'G', 'T', 'P']);
    let digits = digits.strip_prefix(['-', '+']).unwrap_or(digits);
    digits.bytes().all(|byte| byte.is_ascii_digit()).then_some(Parts {
        negative,
        whole,
        fraction,
        has_digits,
        suffix,
    })
}

fn split_digits(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

fn suffix(text: &str) -> Option<(Base, i32, Format)> {
    let decimal = |exponent| Some((Base::Ten, exponent, Format::DecimalSi));
    let binary = |exponent| Some((Base::Two, exponent, Format::BinarySi));
    match text {
        "n" => decimal(-9),
        "u" => decimal(-6),
        "m" => decimal(-3),
        "" => decimal(0),
        "k" => decimal(3),
        "M" => decimal(6),
        "G" => decimal(9),
        "T" => decimal(12),
        "P" => decimal(15),
        "E" => decimal(18),
        "Ki" => binary(10),
        "Mi" => binary(20),
        "Gi" => binary(30),
        "Ti" => binary(40),
        "Pi" => binary(50),
        "Ei" => binary(60),
        _ => {
            let exponent = text.strip_prefix(['e', 'E'])?.parse::<i64>().ok()?;
            // Truncated to 32 bits, as in the reference.
            #[expect(clippy::cast_possible_truncation, reason = "the reference's own conversion")]
            let exponent = exponent as i32;
            Some((Base::Ten, exponent, Format::DecimalExponent))
        }
    }
}

/// Returns the amount as a 64-bit integer, if it surely fits.
fn parse_small(parts: &Parts<'_>, base: Base, exponent: i32) -> Option<Amount<'static>> {
    let digits = i32::try_from(parts.whole.len().saturating_add(parts.fraction.len())).ok()?;
    let places = i32::try_from(parts.fraction.len()).ok()?;
    let (room, factor, exponent) = match base {
        Base::Ten => (SMALL_DIGITS.checked_sub(digits)?, 1_i64, exponent.wrapping_sub(places)),
        Base::Two if parts.fraction.is_empty() => {
            // A power of two has about three tenths as many decimal digits.
            let taken = exponent.wrapping_mul(3).wrapping_div(10);
            let room = 14_i32.checked_sub(digits)?.checked_sub(taken)?;
            (room, 1_i64.checked_shl(exponent.unsigned_abs())?, 0)
        }
        Base::Two => return None,
    };
    if room < 0 || exponent < NANO {
        return None;
    }
    let value = format!("{}{}", parts.whole, parts.fraction).parse::<i64>().ok()?.checked_mul(factor)?;
    Some(Amount::Small { value: if parts.negative { value.wrapping_neg() } else { value }, exponent })
}

/// Whether the text of a small amount is canonical.
fn is_canonical(parts: &Parts<'_>, exponent: i32, format: Format) -> bool {
    let digits = format!("{}{}", parts.whole, parts.fraction);
    match format {
        Format::BinarySi => digits.parse::<i64>().is_ok_and(|value| value & 7 != 0),
        Format::DecimalExponent | Format::DecimalSi => {
            let places = i32::try_from(parts.fraction.len()).unwrap_or(0);
            let exponent = exponent.wrapping_sub(places);
            exponent.wrapping_rem(3) == 0 && !digits.ends_with("000") && !digits.starts_with('0')
        }
    }
}

fn parse_big<'a>(
    parts: &Parts<'_>,
    base: Base,
    exponent: i32,
    mut format: Format,
) -> Result<Quantity<'a>, QuantityError> {
    if !parts.has_digits {
        return Err(QuantityError::Number);
    }
    let mut digits = Digits::parse(&format!("{}{}", parts.whole, parts.fraction));
    let places = i32::try_from(parts.fraction.len()).unwrap_or(i32::MAX);
    let exponent = match base {
        Base::Ten => exponent.saturating_sub(places),
        Base::Two => {
            digits = digits.times(1_u64.checked_shl(exponent.unsigned_abs()).unwrap_or(0));
            places.saturating_neg()
        }
    };
    if digits.is_zero() {
        let amount = Amount::Big { negative: false, digits: "".into(), exponent };
        return Ok(Quantity { amount, format, text: None });
    }
    let digits = at_nano(digits, exponent)?;
    let one = Digits::parse("1000000000");
    let greatest = Digits::parse("9223372036854775807000000000");
    let digits = match format {
        Format::BinarySi if digits.compare(&greatest).is_gt() => greatest,
        _ => digits,
    };
    if format == Format::BinarySi && digits.compare(&one).is_lt() {
        format = Format::DecimalSi;
    }
    let amount = Amount::Big { negative: parts.negative, digits: digits.text().into(), exponent: NANO };
    Ok(Quantity { amount, format, text: None })
}

/// Returns the digits of `digits · 10^exponent` in nano, rounded away from zero.
fn at_nano(mut digits: Digits, exponent: i32) -> Result<Digits, QuantityError> {
    let shift = exponent.saturating_sub(NANO);
    let places = usize::try_from(shift.unsigned_abs()).unwrap_or(usize::MAX);
    if shift < 0 {
        return Ok(digits.drop_last_rounding_up(places).0);
    }
    if shift > GREATEST_EXPONENT {
        return Err(QuantityError::Number);
    }
    digits.append_zeros(places);
    Ok(digits)
}
