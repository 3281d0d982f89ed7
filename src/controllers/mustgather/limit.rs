//! Parses the time limit of a MustGather: a duration as Go writes it, without a sign.

use std::time::Duration;

/// Units, longest name first where one begins another.
const UNITS: [(&str, u64); 7] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// The duration; none where the text is empty or zero.
///
/// # Errors
/// What is wrong, for people.
pub fn parse(text: &str) -> Result<Option<Duration>, String> {
    if text.is_empty() || text == "0" {
        return Ok(None);
    }
    let nanos = nanoseconds(text).ok_or_else(|| {
        format!("mustGatherTimeout `{text}` is not a duration such as 90s, 30m or 1h30m; there is no unit for days")
    })?;
    Ok((nanos > 0).then(|| Duration::from_nanos(nanos)))
}

fn nanoseconds(text: &str) -> Option<u64> {
    let (mut rest, mut total) = (text, 0_u64);
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, behind) = rest.split_at_checked(end)?;
        let end = behind.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(behind.len());
        let (unit, next) = behind.split_at_checked(end)?;
        let (_, scale) = UNITS.into_iter().find(|(name, _)| *name == unit)?;
        total = total.checked_add(scaled(number, scale)?)?;
        rest = next;
    }
    Some(total)
}

/// `1.5` of a unit of so many nanoseconds.
fn scaled(number: &str, scale: u64) -> Option<u64> {
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && part.is_empty() || part.contains('.') {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let (mut of_part, mut digit_scale) = (0_u64, scale);
    for digit in part.bytes() {
        digit_scale /= 10;
        of_part += u64::from(digit.checked_sub(b'0')?) * digit_scale;
    }
    whole.checked_mul(scale)?.checked_add(of_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_as_go_writes_them() {
        for (text, millis) in [
            ("10s", 10_000),
            ("10m", 600_000),
            ("10h", 36_000_000),
            ("1h0m0s", 3_600_000),
            ("1.5h", 5_400_000),
            ("1500ms", 1_500),
            (".5s", 500),
            ("2m30.25s", 150_250),
        ] {
            assert_eq!(parse(text), Ok(Some(Duration::from_millis(millis))), "{text}");
        }
        for text in ["", "0", "0s", "0h0m"] {
            assert_eq!(parse(text), Ok(None), "{text}");
        }
        for text in ["1d", "10", "s", "-1s", "1h -1m", "1.2.3s", ".s", "99999999999h", "1 h", "1h1"] {
            assert!(parse(text).unwrap_err().contains(text), "{text}");
        }
    }
}
