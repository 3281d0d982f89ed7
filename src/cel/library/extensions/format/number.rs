//! Formats numbers in format strings: grouped by thousands, with the signs of the locale `en_US` for infinities and powers of ten;
//! integers and bytes in other bases.

use admit_apimachinery::go::{float, hex};

use super::Clause;
use crate::value::Value;

/// The default number of digits after the point.
const PRECISION: usize = 6;

/// Digits after the point past which a double has only zeros.
const LAST_DIGIT: usize = 1_074;

/// The greatest width and precision of Go's formatter; beyond, it writes an error into the text.
const GREATEST_NUMBER: usize = 1_000_000;

/// `1,234.50`
pub(super) fn fixed(value: f64, precision: Option<usize>) -> String {
    if let Some(name) = special_name(value) {
        return name.to_owned();
    }
    let wanted = precision.unwrap_or(PRECISION);
    let (prefix, wanted) = if wanted > GREATEST_NUMBER { ("%!(BADPREC)", PRECISION) } else { ("", wanted) };
    let (least, most) = fraction_digits(wanted);
    let text = float::fixed(value.abs(), most.min(LAST_DIGIT));
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let needed = fraction.trim_end_matches('0').len().max(least);
    let sign = if value < 0.0 { "-" } else { "" };
    let point = if needed == 0 { "" } else { "." };
    let zeros = "0".repeat(needed.saturating_sub(fraction.len()));
    let fraction = fraction.get(..needed).unwrap_or(fraction);
    format!("{prefix}{sign}{}{point}{fraction}{zeros}", grouped(whole))
}

/// The least and the greatest number of digits after the point. The reference keeps them in 8 and in 16 bits, where a
/// negative one sets no limit.
fn fraction_digits(precision: usize) -> (usize, usize) {
    let [least, high, ..] = precision.to_le_bytes();
    let most = usize::try_from(i16::from_le_bytes([least, high])).unwrap_or(LAST_DIGIT);
    (usize::from(least), most)
}

/// `1.234500×10⁰³`, with spaces in front up to the width.
pub(super) fn scientific(value: f64, width: Option<usize>) -> String {
    let text = special_name(value).map_or_else(|| power_of_ten(value), str::to_owned);
    match width.unwrap_or(PRECISION) {
        width if width > GREATEST_NUMBER => format!("%!(BADWIDTH){text}"),
        width => {
            let missing = width.saturating_sub(text.chars().count());
            format!("{}{text}", " ".repeat(missing))
        }
    }
}

fn power_of_ten(value: f64) -> String {
    let text = float::scientific(value.abs(), Some(PRECISION));
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "+00"));
    let sign = if value < 0.0 { "-" } else { "" };
    let exponent: String = exponent.chars().filter_map(superscript).collect();
    format!("{sign}{mantissa}×10{exponent}")
}

const fn superscript(c: char) -> Option<char> {
    Some(match c {
        '-' => '⁻',
        '0' => '⁰',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        '4' => '⁴',
        '5' => '⁵',
        '6' => '⁶',
        '7' => '⁷',
        '8' => '⁸',
        '9' => '⁹',
        _ => return None,
    })
}

const fn special_name(value: f64) -> Option<&'static str> {
    if value.is_nan() {
        Some("NaN")
    } else if value.is_infinite() {
        Some(if value > 0.0 { "∞" } else { "-∞" })
    } else {
        None
    }
}

/// Commas between groups of three digits.
fn grouped(digits: &str) -> String {
    let mut text = String::with_capacity(digits.len().saturating_mul(2));
    for (index, digit) in digits.chars().enumerate() {
        let left = digits.len().saturating_sub(index);
        if index > 0 && left.is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A value in the base of the clause; none for a type that the clause does not take.
pub(super) fn in_base(clause: Clause, value: &Value<'_>) -> Option<String> {
    let (negative, magnitude) = match (clause, value) {
        (_, Value::Int(int)) => (*int < 0, int.unsigned_abs()),
        (_, Value::Uint(uint)) => (false, *uint),
        (Clause::Binary, Value::Bool(bool)) => (false, u64::from(*bool)),
        (Clause::Hexadecimal { upper }, Value::String(text)) => {
            return Some(hexadecimal(text.as_bytes(), upper));
        }
        (Clause::Hexadecimal { upper }, Value::Bytes(bytes)) => return Some(hexadecimal(bytes, upper)),
        _ => return None,
    };
    let sign = if negative { "-" } else { "" };
    Some(match clause {
        Clause::Binary => format!("{sign}{magnitude:b}"),
        Clause::Octal => format!("{sign}{magnitude:o}"),
        Clause::Hexadecimal { upper: true } => format!("{sign}{magnitude:X}"),
        _ => format!("{sign}{magnitude:x}"),
    })
}

fn hexadecimal(bytes: &[u8], upper: bool) -> String {
    let text = hex::encode(bytes);
    if upper { text.to_uppercase() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles() {
        for (value, precision, text) in [
            (1_234.5, None, "1,234.500000"),
            (-2.75, Some(0), "-3"),
            (0.0, Some(0), "0"),
            (999.0, Some(1), "999.0"),
            (1e6, Some(0), "1,000,000"),
            (f64::NEG_INFINITY, None, "-∞"),
        ] {
            assert_eq!(fixed(value, precision), text);
        }
        assert_eq!(fixed(0.5, Some(1_000)).len(), 2 + 232);
        assert_eq!(fixed(0.125, Some(1)), "0.1");
        assert_eq!(scientific(1_234.567_8, Some(10)), "1.234568×10⁰³");
        assert_eq!(scientific(1e-300, Some(20)), "     1.000000×10⁻³⁰⁰");
        assert_eq!(scientific(f64::NAN, None), "   NaN");
    }
}
