//! Canonical forms of the scalars that are strings in JSON and something else in the API server.

use admit_apimachinery::go::{self, Layout, Timestamp};

const QUANTITY_FORM: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/// A time in UTC: to the second, or to the microsecond, which such a field demands.
pub(super) fn time(text: &str, micro: bool) -> Result<String, String> {
    let layout = if micro { Layout::Rfc3339Micro } else { Layout::Rfc3339 };
    let read = Timestamp::parse(layout, text).map_err(|error| error.to_string())?;
    let seconds = Timestamp { nanos: 0, offset: 0, ..read }.to_string();
    if !micro {
        return Ok(seconds);
    }
    Ok(format!("{}.{:06}Z", seconds.trim_end_matches('Z'), read.nanos / 1_000))
}

/// Base64 in its padded standard form; line breaks are ignored.
pub(super) fn base64(text: &str) -> Result<String, String> {
    Ok(to_base64(&go::json::bytes(text)?))
}

pub(super) fn to_base64(bytes: &[u8]) -> String {
    go::base64::encode(bytes)
}

#[derive(Clone, Copy, PartialEq)]
enum Base {
    Decimal,
    Binary,
    Exponent,
}

/// A quantity in its canonical form: no fraction, the largest suffix that keeps the number whole.
pub(super) fn quantity(text: &str) -> Result<String, String> {
    canonical_quantity(text.trim()).ok_or_else(|| QUANTITY_FORM.to_owned())
}

fn canonical_quantity(text: &str) -> Option<String> {
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at_checked(end)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if number.is_empty() || number == "." || fraction.contains('.') {
        return None;
    }
    let fraction = fraction.get(..fraction.len().min(9)).unwrap_or_default();
    let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
    let (base, exponent) = suffix_scale(suffix)?;
    // `value` is in units of 10^-9, the finest that a quantity holds; finer fractions round up.
    let shift = 9 - i32::try_from(fraction.len()).ok()?;
    let scaled = digits.checked_mul(10_i128.checked_pow(u32::try_from(shift).ok()?)?)?;
    let value = match base {
        Base::Binary => scaled.checked_mul(1024_i128.checked_pow(u32::try_from(exponent).ok()?)?)?,
        Base::Decimal | Base::Exponent if exponent >= 0 => {
            scaled.checked_mul(10_i128.checked_pow(u32::try_from(exponent).ok()?)?)?
        }
        Base::Decimal | Base::Exponent => {
            let divisor = 10_i128.checked_pow(u32::try_from(-exponent).ok()?)?;
            scaled.checked_add(divisor - 1)? / divisor
        }
    };
    Some(format!("{}{}", if negative && value != 0 { "-" } else { "" }, write_quantity(value, base)))
}

fn suffix_scale(suffix: &str) -> Option<(Base, i32)> {
    const DECIMAL: [(&str, i32); 10] = [
        ("n", -9),
        ("u", -6),
        ("m", -3),
        ("", 0),
        ("k", 3),
        ("M", 6),
        ("G", 9),
        ("T", 12),
        ("P", 15),
        ("E", 18),
    ];
    const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    if let Some((_, exponent)) = DECIMAL.iter().find(|(name, _)| *name == suffix) {
        return Some((Base::Decimal, *exponent));
    }
    if let Some(power) = BINARY.iter().position(|name| *name == suffix) {
        return Some((Base::Binary, i32::try_from(power).ok()? + 1));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?;
    Some((Base::Exponent, exponent.strip_prefix('+').unwrap_or(exponent).parse().ok()?))
}

fn write_quantity(nanos: i128, base: Base) -> String {
    const UNIT: i128 = 1_000_000_000;
    if nanos == 0 {
        return "0".to_owned();
    }
    // Binary suffixes cannot express fractions, and do not suit numbers below 1024.
    if base == Base::Binary && nanos % UNIT == 0 && nanos / UNIT >= 1024 {
        let mut number = nanos / UNIT;
        let mut suffix = "";
        for next in ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"] {
            if number % 1024 != 0 {
                break;
            }
            number /= 1024;
            suffix = next;
        }
        return format!("{number}{suffix}");
    }
    let mut number = nanos;
    let mut exponent = -9;
    while number % 1000 == 0 && exponent < 18 {
        number /= 1000;
        exponent += 3;
    }
    if base == Base::Exponent {
        return if exponent == 0 { number.to_string() } else { format!("{number}e{exponent}") };
    }
    let suffix = match exponent {
        -9 => "n",
        -6 => "u",
        -3 => "m",
        0 => "",
        3 => "k",
        6 => "M",
        9 => "G",
        12 => "T",
        15 => "P",
        _ => "E",
    };
    format!("{number}{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_take_their_canonical_form() {
        for (written, canonical) in [
            ("1", "1"),
            ("0.5", "500m"),
            ("1000m", "1"),
            ("1024Mi", "1Gi"),
            ("1.5Gi", "1536Mi"),
            ("1000", "1k"),
            ("128974848", "128974848"),
            ("129e6", "129e6"),
            ("-2", "-2"),
            ("512Ki", "512Ki"),
        ] {
            assert_eq!(quantity(written).as_deref(), Ok(canonical), "{written}");
        }
        assert_eq!(quantity("ten").unwrap_err(), QUANTITY_FORM);
    }

    #[test]
    fn times_are_written_in_utc() {
        assert_eq!(time("2024-01-02T03:04:05.6+02:00", false).as_deref(), Ok("2024-01-02T01:04:05Z"));
        assert_eq!(
            time("2024-01-02T03:04:05.600000-01:00", true).as_deref(),
            Ok("2024-01-02T04:04:05.600000Z")
        );
        assert_eq!(
            time("2024-01-02T03:04:05.6Z", true).unwrap_err(),
            "parsing time \"2024-01-02T03:04:05.6Z\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \".6Z\" as \
             \".000000\""
        );
    }
}
