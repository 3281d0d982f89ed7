//! Parses and formats durations as Go's `time.ParseDuration`, `Duration.String` and its accessors.

use std::fmt;

use super::quote::OfTime;

/// Nanoseconds in a second.
pub const SECOND: i64 = 1_000_000_000;
const MINUTE: i64 = 60_000_000_000;
const HOUR: i64 = 3_600_000_000_000;

/// Why a text is not a duration; `Display` is Go's error message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseError<'t> {
    text: &'t str,
    problem: Problem<'t>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Problem<'t> {
    Invalid,
    MissingUnit,
    UnknownUnit(&'t str),
}

impl fmt::Display for ParseError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = OfTime(self.text);
        match self.problem {
            Problem::Invalid => write!(f, "time: invalid duration {text}"),
            Problem::MissingUnit => write!(f, "time: missing unit in duration {text}"),
            Problem::UnknownUnit(unit) => {
                write!(f, "time: unknown unit {} in duration {text}", OfTime(unit))
            }
        }
    }
}

impl std::error::Error for ParseError<'_> {}

/// Parses texts such as `-1h2.5m` to nanoseconds.
///
/// # Errors
/// Go's error message: `time: missing unit in duration "5"`.
pub fn parse(text: &str) -> Result<i64, ParseError<'_>> {
    nanoseconds(text).map_err(|problem| ParseError { text, problem })
}

fn nanoseconds(text: &str) -> Result<i64, Problem<'_>> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(Problem::Invalid);
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let (nanoseconds, after) = parse_part(rest)?;
        total = total.checked_add(nanoseconds).filter(|sum| *sum <= LIMIT).ok_or(Problem::Invalid)?;
        rest = after;
    }
    let signed = if negative { 0_i64.checked_sub_unsigned(total) } else { i64::try_from(total).ok() };
    signed.ok_or(Problem::Invalid)
}

/// The magnitude of the smallest (most negative) duration.
const LIMIT: u64 = 1 << 63;

/// Parses a number with its unit; returns it in nanoseconds, and the rest of the text.
fn parse_part(text: &str) -> Result<(u64, &str), Problem<'_>> {
    let (whole, rest) = split_digits(text);
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => split_digits(rest),
        None => ("", rest),
    };
    // Go checks the size of the number before it looks for a unit.
    let number = whole.bytes().try_fold(0_u64, |n, b| {
        n.checked_mul(10)?.checked_add(u64::from(b.wrapping_sub(b'0'))).filter(|n| *n <= LIMIT)
    });
    let number = number.filter(|_| !(whole.is_empty() && fraction.is_empty())).ok_or(Problem::Invalid)?;
    let end = rest.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(rest.len());
    let (unit, after) = match rest.split_at_checked(end) {
        None | Some(("", _)) => return Err(Problem::MissingUnit),
        Some(split) => split,
    };
    let unit = unit_nanoseconds(unit).ok_or(Problem::UnknownUnit(unit))?;
    let nanoseconds = number.checked_mul(unit).and_then(|n| n.checked_add(scale_fraction(fraction, unit)));
    nanoseconds.filter(|n| *n <= LIMIT).map(|n| (n, after)).ok_or(Problem::Invalid)
}

fn split_digits(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

fn unit_nanoseconds(unit: &str) -> Option<u64> {
    Some(match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => SECOND.unsigned_abs(),
        "m" => MINUTE.unsigned_abs(),
        "h" => HOUR.unsigned_abs(),
        _ => return None,
    })
}

/// Computes the fraction in floating point, as Go does; digits that overflow 63 bits are dropped.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "Go's own rounding; the product is less than one hour"
)]
fn scale_fraction(digits: &str, unit: u64) -> u64 {
    let (mut value, mut scale) = (0_u64, 1_f64);
    for byte in digits.bytes() {
        let next = value.checked_mul(10).and_then(|v| v.checked_add(u64::from(byte.wrapping_sub(b'0'))));
        let Some(next) = next.filter(|v| *v <= LIMIT) else { break };
        value = next;
        scale *= 10.0;
    }
    (value as f64 * (unit as f64 / scale)) as u64
}

/// Formats as Go's `String`: `1h0m0.5s`, and below a second with the unit that leaves a digit before the point.
#[must_use]
pub fn format(nanoseconds: i64) -> String {
    let magnitude = nanoseconds.unsigned_abs();
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let text = match magnitude {
        0 => "0s".to_owned(),
        1..1_000 => format!("{magnitude}ns"),
        1_000..1_000_000 => decimal(magnitude, 3, "µs"),
        1_000_000..1_000_000_000 => decimal(magnitude, 6, "ms"),
        _ => clock(magnitude),
    };
    format!("{sign}{text}")
}

fn clock(magnitude: u64) -> String {
    const MINUTE: u64 = 60_000_000_000;
    let minutes = magnitude.wrapping_div(MINUTE);
    let seconds = decimal(magnitude.wrapping_rem(MINUTE), 9, "s");
    match (minutes.wrapping_div(60), minutes.wrapping_rem(60)) {
        (0, 0) => seconds,
        (0, minutes) => format!("{minutes}m{seconds}"),
        (hours, minutes) => format!("{hours}h{minutes}m{seconds}"),
    }
}

/// Formats a number of 10^-places without trailing zeros.
fn decimal(magnitude: u64, places: usize, name: &str) -> String {
    let digits = format!("{magnitude:0width$}", width = places.saturating_add(1));
    let (whole, fraction) =
        digits.split_at_checked(digits.len().saturating_sub(places)).unwrap_or((&digits, ""));
    match fraction.trim_end_matches('0') {
        "" => format!("{whole}{name}"),
        fraction => format!("{whole}.{fraction}{name}"),
    }
}

/// Returns Go's `Seconds`.
#[must_use]
pub fn seconds(nanoseconds: i64) -> f64 {
    in_units(nanoseconds, SECOND)
}

/// Returns Go's `Minutes`.
#[must_use]
pub fn minutes(nanoseconds: i64) -> f64 {
    in_units(nanoseconds, MINUTE)
}

/// Returns Go's `Hours`.
#[must_use]
pub fn hours(nanoseconds: i64) -> f64 {
    in_units(nanoseconds, HOUR)
}

#[expect(clippy::cast_precision_loss, reason = "Go's own rounding")]
fn in_units(nanoseconds: i64, unit: i64) -> f64 {
    let whole = nanoseconds.checked_div(unit).unwrap_or(0);
    let rest = nanoseconds.checked_rem(unit).unwrap_or(0);
    whole as f64 + rest as f64 / unit as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_what_go_writes() {
        for (nanos, text) in [
            (0, "0s"),
            (-1, "-1ns"),
            (1_100, "1.1µs"),
            (2_000_000, "2ms"),
            (3_600_500_000_000, "1h0m0.5s"),
            (61_000_000_000, "1m1s"),
            (i64::MIN, "-2562047h47m16.854775808s"),
        ] {
            assert_eq!(format(nanos), text);
        }
    }

    #[test]
    fn reads_what_go_reads() {
        for (text, value) in [
            ("0", Some(0)),
            ("-0", Some(0)),
            ("1.5h", Some(5_400 * SECOND)),
            ("1h1m1s1ms1us1ns", Some(3_661_001_001_001)),
            ("-.5s", Some(-SECOND / 2)),
            ("2562047h47m16.854775807s", Some(i64::MAX)),
            ("-2562047h47m16.854775808s", Some(i64::MIN)),
            ("2562047h47m16.854775808s", None),
            ("1d", None),
            ("1", None),
            ("", None),
            ("s", None),
            (".s", None),
            ("1 s", None),
            ("3µs", Some(3_000)),
        ] {
            assert_eq!(parse(text).ok(), value, "{text}");
        }
    }

    #[test]
    fn says_what_go_says() {
        for (text, why) in [
            ("", "time: invalid duration \"\""),
            ("ten", "time: invalid duration \"ten\""),
            ("-", "time: invalid duration \"-\""),
            (".s", "time: invalid duration \".s\""),
            ("10", "time: missing unit in duration \"10\""),
            ("1..5s", "time: missing unit in duration \"1..5s\""),
            ("10x", "time: unknown unit \"x\" in duration \"10x\""),
            ("1é", "time: unknown unit \"\\xc3\\xa9\" in duration \"1\\xc3\\xa9\""),
            ("3000000h", "time: invalid duration \"3000000h\""),
            ("99999999999999999999", "time: invalid duration \"99999999999999999999\""),
        ] {
            assert_eq!(parse(text).map_err(|error| error.to_string()), Err(why.to_owned()));
        }
    }
}
