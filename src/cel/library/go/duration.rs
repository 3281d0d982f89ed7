//! `time.ParseDuration` and the parts of a duration.

/// Nanoseconds in a second.
pub(crate) const SECOND: i64 = 1_000_000_000;
const MINUTE: i64 = 60_000_000_000;
const HOUR: i64 = 3_600_000_000_000;

/// Reads `-1h2.5m` and its like as nanoseconds; none where Go has an error.
pub(crate) fn parse(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let (nanoseconds, after) = parse_part(rest)?;
        total = total.checked_add(nanoseconds).filter(|sum| *sum <= LIMIT)?;
        rest = after;
    }
    if negative { 0_i64.checked_sub_unsigned(total) } else { i64::try_from(total).ok() }
}

/// The magnitude of the least duration.
const LIMIT: u64 = 1 << 63;

/// One number with its unit, and what follows.
fn parse_part(text: &str) -> Option<(u64, &str)> {
    let (whole, rest) = split_digits(text);
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => split_digits(rest),
        None => ("", rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let end = rest.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(rest.len());
    let (unit, after) = rest.split_at_checked(end)?;
    let unit = unit_nanoseconds(unit)?;
    let whole = whole.bytes().try_fold(0_u64, |n, b| {
        n.checked_mul(10)?.checked_add(u64::from(b.wrapping_sub(b'0'))).filter(|n| *n <= LIMIT)
    })?;
    let nanoseconds = whole.checked_mul(unit)?.checked_add(scale_fraction(fraction, unit))?;
    (nanoseconds <= LIMIT).then_some((nanoseconds, after))
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

/// The fraction in double arithmetic, as Go computes it; digits that overflow 63 bits are dropped.
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

/// Go's `String`: `1h0m0.5s`, and below a second the unit that leaves a digit before the point.
pub(crate) fn format(nanoseconds: i64) -> String {
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

/// A number of 10^-places, without needless zeros.
fn decimal(magnitude: u64, places: usize, name: &str) -> String {
    let digits = format!("{magnitude:0width$}", width = places.saturating_add(1));
    let (whole, fraction) =
        digits.split_at_checked(digits.len().saturating_sub(places)).unwrap_or((&digits, ""));
    match fraction.trim_end_matches('0') {
        "" => format!("{whole}{name}"),
        fraction => format!("{whole}.{fraction}{name}"),
    }
}

/// Go's `Seconds`.
pub(crate) fn seconds(nanoseconds: i64) -> f64 {
    in_units(nanoseconds, SECOND)
}

/// Go's `Minutes`.
pub(crate) fn minutes(nanoseconds: i64) -> f64 {
    in_units(nanoseconds, MINUTE)
}

/// Go's `Hours`.
pub(crate) fn hours(nanoseconds: i64) -> f64 {
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
            assert_eq!(parse(text), value, "{text}");
        }
    }
}
