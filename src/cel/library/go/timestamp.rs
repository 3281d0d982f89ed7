//! RFC 3339 as Go's `time.Parse` and `Format` have it, and civil dates of the proleptic Gregorian calendar.

use std::fmt::Write as _;

use crate::value::Timestamp;

const DAY: i64 = 86_400;
/// 0001-01-01T00:00:00Z.
pub(crate) const MIN_SECONDS: i64 = -62_135_596_800;
/// 9999-12-31T23:59:59Z.
pub(crate) const MAX_SECONDS: i64 = 253_402_300_799;

/// A date and time of day in some zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Civil {
    pub(crate) year: i64,
    /// 1 to 12.
    pub(crate) month: i64,
    /// 1 to 31.
    pub(crate) day: i64,
    /// 0 to 365.
    pub(crate) day_of_year: i64,
    /// 0 is Sunday.
    pub(crate) weekday: i64,
    pub(crate) hour: i64,
    pub(crate) minute: i64,
    pub(crate) second: i64,
}

/// Reads an RFC 3339 text with Go's latitude: one-digit hours, a comma before the fraction, offsets up to 24:60, digits
/// past the ninth dropped. None where Go has an error. The range of seconds is the caller's to check.
pub(crate) fn parse(text: &str) -> Option<Timestamp> {
    let mut input = Input(text.as_bytes());
    let year = input.number(4, 4)?;
    input.literal(b'-')?;
    let month = input.number(2, 2)?;
    input.literal(b'-')?;
    let day = input.number(2, 2)?;
    input.literal(b'T')?;
    let hour = input.number(1, 2)?;
    input.literal(b':')?;
    let minute = input.number(2, 2)?;
    input.literal(b':')?;
    let second = input.number(2, 2)?;
    let nanos = input.fraction();
    let offset = input.offset()?;
    let in_range = (1..=12).contains(&month) && day >= 1 && day <= days_in_month(year, month);
    if !in_range || hour > 23 || minute > 59 || second > 59 || !input.0.is_empty() {
        return None;
    }
    let days = days_from_civil(year, month, day);
    let of_day = hour.checked_mul(3_600)?.checked_add(minute.checked_mul(60)?)?.checked_add(second)?;
    let local = days.checked_mul(DAY)?.checked_add(of_day)?;
    Some(Timestamp { seconds: local.checked_sub(i64::from(offset))?, nanos, offset })
}

/// Writes RFC 3339 with as many digits of fraction as needed, in the offset that the instant carries.
pub(crate) fn format(timestamp: Timestamp) -> String {
    let Civil { year, month, day, hour, minute, second, .. } =
        civil(timestamp.seconds, i64::from(timestamp.offset));
    let mut text = format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}");
    if timestamp.nanos != 0 {
        let digits = format!("{:09}", timestamp.nanos);
        text.push('.');
        text.push_str(digits.trim_end_matches('0'));
    }
    if timestamp.offset == 0 {
        text.push('Z');
    } else {
        let minutes = timestamp.offset.unsigned_abs().wrapping_div(60);
        let sign = if timestamp.offset < 0 { '-' } else { '+' };
        // Writing to a string does not fail.
        let _ = write!(text, "{sign}{:02}:{:02}", minutes.wrapping_div(60), minutes.wrapping_rem(60));
    }
    text
}

/// The civil time of an instant, `offset` seconds east of UTC.
pub(crate) fn civil(seconds: i64, offset: i64) -> Civil {
    let local = seconds.saturating_add(offset);
    let (days, of_day) = (local.div_euclid(DAY), local.rem_euclid(DAY));
    let (year, month, day) = civil_from_days(days);
    Civil {
        year,
        month,
        day,
        day_of_year: days.saturating_sub(days_from_civil(year, 1, 1)),
        // 1970-01-01 was a Thursday.
        weekday: days.saturating_add(4).rem_euclid(7),
        hour: of_day.wrapping_div(3_600),
        minute: of_day.wrapping_div(60).wrapping_rem(60),
        second: of_day.wrapping_rem(60),
    }
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

const fn is_leap(year: i64) -> bool {
    year.rem_euclid(4) == 0 && (year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0)
}

/// Days since 1970-01-01; years run from March in eras of 400 (H. Hinnant's algorithm).
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year.saturating_sub(1) } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_from_march = month.wrapping_add(9).rem_euclid(12);
    let day_of_year =
        month_from_march.wrapping_mul(153).wrapping_add(2).wrapping_div(5).wrapping_add(day).wrapping_sub(1);
    let leap_days = year_of_era.wrapping_div(4).wrapping_sub(year_of_era.wrapping_div(100));
    let day_of_era = year_of_era.wrapping_mul(365).wrapping_add(leap_days).wrapping_add(day_of_year);
    era.wrapping_mul(146_097).wrapping_add(day_of_era).wrapping_sub(719_468)
}

fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days.wrapping_add(719_468);
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = day_of_era
        .wrapping_sub(day_of_era.wrapping_div(1_460))
        .wrapping_add(day_of_era.wrapping_div(36_524))
        .wrapping_sub(day_of_era.wrapping_div(146_096))
        .wrapping_div(365);
    let leap_days = year_of_era.wrapping_div(4).wrapping_sub(year_of_era.wrapping_div(100));
    let day_of_year = day_of_era.wrapping_sub(year_of_era.wrapping_mul(365).wrapping_add(leap_days));
    let month_from_march = day_of_year.wrapping_mul(5).wrapping_add(2).wrapping_div(153);
    let days_before = month_from_march.wrapping_mul(153).wrapping_add(2).wrapping_div(5);
    let day = day_of_year.wrapping_sub(days_before).wrapping_add(1);
    let month = if month_from_march < 10 {
        month_from_march.wrapping_add(3)
    } else {
        month_from_march.wrapping_sub(9)
    };
    let year = era.wrapping_mul(400).wrapping_add(year_of_era).wrapping_add(i64::from(month <= 2));
    (year, month, day)
}

/// What is left of the text.
struct Input<'t>(&'t [u8]);

impl Input<'_> {
    fn literal(&mut self, expected: u8) -> Option<()> {
        let rest = self.0.strip_prefix(&[expected])?;
        self.0 = rest;
        Some(())
    }

    /// A number of `least` to `most` digits; takes as many as there are.
    fn number(&mut self, least: usize, most: usize) -> Option<i64> {
        let digits = self.0.iter().take(most).take_while(|b| b.is_ascii_digit()).count();
        if digits < least {
            return None;
        }
        let (number, rest) = self.0.split_at_checked(digits)?;
        self.0 = rest;
        Some(decimal(number))
    }

    /// Nanoseconds of `.123` or `,123`; zero where no fraction follows.
    fn fraction(&mut self) -> u32 {
        let ([b'.' | b',', rest @ ..], Some(true)) = (self.0, self.0.get(1).map(u8::is_ascii_digit)) else {
            return 0;
        };
        let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
        let (fraction, rest) = rest.split_at_checked(digits).unwrap_or((rest, &[]));
        self.0 = rest;
        (0..9).fold(0_u32, |nanos, place| {
            let digit = fraction.get(place).map_or(0, |b| b.wrapping_sub(b'0'));
            nanos.wrapping_mul(10).wrapping_add(u32::from(digit))
        })
    }

    /// `Z` or `±hh:mm`, in seconds.
    fn offset(&mut self) -> Option<i32> {
        if let [b'Z', rest @ ..] = self.0 {
            self.0 = rest;
            return Some(0);
        }
        let [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2, rest @ ..] = self.0 else { return None };
        let digits = [*h1, *h2, *m1, *m2];
        if !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let [h1, h2, m1, m2] = digits.map(|b| i32::from(b.wrapping_sub(b'0')));
        let (hours, minutes) = (h1.wrapping_mul(10).wrapping_add(h2), m1.wrapping_mul(10).wrapping_add(m2));
        // Go takes 24 hours and 60 minutes, since people write them.
        if hours > 24 || minutes > 60 {
            return None;
        }
        self.0 = rest;
        let seconds = hours.wrapping_mul(60).wrapping_add(minutes).wrapping_mul(60);
        Some(if *sign == b'-' { seconds.wrapping_neg() } else { seconds })
    }
}

fn decimal(digits: &[u8]) -> i64 {
    digits.iter().fold(0, |n: i64, b| n.wrapping_mul(10).wrapping_add(i64::from(b.wrapping_sub(b'0'))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes_rfc_3339() {
        for (text, written) in [
            ("1970-01-01T00:00:00Z", Some("1970-01-01T00:00:00Z")),
            ("2024-02-29T23:59:59.120+02:30", Some("2024-02-29T23:59:59.12+02:30")),
            ("2023-02-29T00:00:00Z", None),
            ("2020-1-1T0:0:0Z", None),
            ("2020-01-01T1:00:00Z", Some("2020-01-01T01:00:00Z")),
            ("2020-01-01T01:00:00,5Z", Some("2020-01-01T01:00:00.5Z")),
            ("2020-01-01T01:00:00.1234567899Z", Some("2020-01-01T01:00:00.123456789Z")),
            ("2020-01-01T01:00:60Z", None),
            ("2020-01-01T01:00:00", None),
            ("2020-01-01T01:00:00Zx", None),
            ("2020-01-01 01:00:00Z", None),
            ("0000-01-01T00:00:00-00:00", Some("0000-01-01T00:00:00Z")),
        ] {
            assert_eq!(parse(text).map(format).as_deref(), written, "{text}");
        }
        assert_eq!(parse("0001-01-01T00:00:00Z").map(|t| t.seconds), Some(MIN_SECONDS));
        assert_eq!(parse("9999-12-31T23:59:59Z").map(|t| t.seconds), Some(MAX_SECONDS));
    }

    #[test]
    fn civil_of_known_days() {
        let civil = civil(1_703_464_220, 0);
        assert_eq!(
            (civil.year, civil.month, civil.day, civil.weekday, civil.day_of_year),
            (2023, 12, 25, 1, 358)
        );
        assert_eq!((civil.hour, civil.minute, civil.second), (0, 30, 20));
    }
}
