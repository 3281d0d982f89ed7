//! Defines instants, formatted by RFC 3339 as Go's `Format` does, and civil dates of the proleptic Gregorian calendar.

use std::fmt;

const DAY: i64 = 86_400;
/// 0001-01-01T00:00:00Z.
pub const MIN_SECONDS: i64 = -62_135_596_800;
/// 9999-12-31T23:59:59Z.
pub const MAX_SECONDS: i64 = 253_402_300_799;

/// An instant, with the offset in which it was written. `Display` is RFC 3339 in that offset, with as many fractional digits as
/// needed.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Hash)]
pub struct Timestamp {
    /// Seconds since 1970-01-01T00:00:00Z.
    pub seconds: i64,
    /// 0 to 999,999,999.
    pub nanos: u32,
    /// Seconds east of UTC; shown, never compared.
    pub offset: i32,
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Civil { year, month, day, hour, minute, second, .. } =
            civil(self.seconds, i64::from(self.offset));
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
        if self.nanos != 0 {
            let digits = format!("{:09}", self.nanos);
            write!(f, ".{}", digits.trim_end_matches('0'))?;
        }
        if self.offset == 0 {
            return f.write_str("Z");
        }
        let minutes = self.offset.unsigned_abs().wrapping_div(60);
        let sign = if self.offset < 0 { '-' } else { '+' };
        write!(f, "{sign}{:02}:{:02}", minutes.wrapping_div(60), minutes.wrapping_rem(60))
    }
}

/// A date and time of day in some zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Civil {
    /// The year in the proleptic Gregorian calendar.
    pub year: i64,
    /// 1 to 12.
    pub month: i64,
    /// 1 to 31.
    pub day: i64,
    /// 0 to 365.
    pub day_of_year: i64,
    /// 0 is Sunday.
    pub weekday: i64,
    /// 0 to 23.
    pub hour: i64,
    /// 0 to 59.
    pub minute: i64,
    /// 0 to 59.
    pub second: i64,
}

/// Returns the civil time of an instant, `offset` seconds east of UTC.
#[must_use]
pub fn civil(seconds: i64, offset: i64) -> Civil {
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

pub(super) fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Returns the seconds since 1970-01-01T00:00:00Z of a date and a time of day in UTC.
pub(super) fn seconds_of(
    (year, month, day): (i64, i64, i64),
    (hour, minute, second): (i64, i64, i64),
) -> i64 {
    let minutes = hour.saturating_mul(60).saturating_add(minute);
    let of_day = minutes.saturating_mul(60).saturating_add(second);
    days_from_civil(year, month, day).saturating_mul(DAY).saturating_add(of_day)
}

const fn is_leap(year: i64) -> bool {
    year.rem_euclid(4) == 0 && (year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0)
}

/// Returns the days since 1970-01-01; years begin in March, in eras of 400 (H. Hinnant's algorithm).
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

#[cfg(test)]
mod tests {
    use super::*;

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
