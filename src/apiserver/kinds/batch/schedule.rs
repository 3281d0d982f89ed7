//! Validates schedules of CronJobs, with the messages of the parser that Kubernetes uses (github.com/robfig/cron/v3).

use admit_apimachinery::go::integer::{NumberError, atoi};
use admit_apimachinery::go::zone::ZoneError;
use admit_apimachinery::go::{self, duration};
use thiserror::Error;

/// One of the five fields of a schedule: its least and greatest number, and names for numbers, counted from the least.
struct Bounds {
    min: i64,
    max: i64,
    names: &'static [&'static str],
}

const FIELDS: [Bounds; 5] = [
    Bounds { min: 0, max: 59, names: &[] },
    Bounds { min: 0, max: 23, names: &[] },
    Bounds { min: 1, max: 31, names: &[] },
    Bounds {
        min: 1,
        max: 12,
        names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
    },
    Bounds { min: 0, max: 6, names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"] },
];
const DESCRIPTORS: [&str; 7] =
    ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];

/// Why a schedule is invalid, with the invalid part.
#[derive(Debug, PartialEq, Eq, Error)]
pub(super) enum ScheduleError<'s> {
    #[error("provided bad location {zone}: {error}")]
    Zone { zone: &'s str, error: ZoneError },
    #[error("expected exactly 5 fields, found {}: [{}]", .0.len(), .0.join(" "))]
    Fields(Vec<&'s str>),
    #[error("failed to parse duration {text}: {error}")]
    Duration { text: &'s str, error: duration::ParseError<'s> },
    #[error("unrecognized descriptor: {0}")]
    Descriptor(&'s str),
    #[error("too many hyphens: {0}")]
    Hyphens(&'s str),
    #[error("too many slashes: {0}")]
    Slashes(&'s str),
    #[error("beginning of range ({start}) below minimum ({min}): {range}")]
    Low { start: i64, min: i64, range: &'s str },
    #[error("end of range ({end}) above maximum ({max}): {range}")]
    High { end: i64, max: i64, range: &'s str },
    #[error("beginning of range ({start}) beyond end of range ({end}): {range}")]
    Reversed { start: i64, end: i64, range: &'s str },
    #[error("step of range should be a positive number: {0}")]
    Step(&'s str),
    #[error("failed to parse int from {text}: {error}")]
    Number { text: &'s str, error: NumberError },
    #[error("negative number ({number}) not allowed: {text}")]
    Negative { number: i64, text: &'s str },
}

/// Validates a schedule.
pub(super) fn check(schedule: &str) -> Result<(), ScheduleError<'_>> {
    let zoned = schedule.starts_with("TZ=") || schedule.starts_with("CRON_TZ=");
    let rest = match schedule.split_once('=').filter(|_| zoned) {
        Some((_, rest)) => {
            let (zone, rest) = rest.split_once(' ').unwrap_or((rest, ""));
            zone_exists(zone).map_err(|error| ScheduleError::Zone { zone, error })?;
            rest.trim()
        }
        None => schedule,
    };
    if rest.starts_with('@') {
        return descriptor(rest);
    }
    let parts: Vec<&str> = rest.split_whitespace().collect();
    if parts.len() != FIELDS.len() {
        return Err(ScheduleError::Fields(parts));
    }
    parts.iter().zip(&FIELDS).try_for_each(|(part, bounds)| {
        part.split(',').filter(|range| !range.is_empty()).try_for_each(|range| check_range(range, bounds))
    })
}

/// Checks that a time zone of that name exists.
pub(super) fn zone_exists(zone: &str) -> Result<(), ZoneError> {
    go::zone::offset_at(zone, 0).map(drop)
}

fn descriptor(text: &str) -> Result<(), ScheduleError<'_>> {
    match text.strip_prefix("@every ") {
        Some(span) => {
            duration::parse(span).map(drop).map_err(|error| ScheduleError::Duration { text, error })
        }
        None if DESCRIPTORS.contains(&text) => Ok(()),
        None => Err(ScheduleError::Descriptor(text)),
    }
}

/// Validates one of the ranges of a field: `*`, `3`, `3-5`, each optionally with `/2`.
fn check_range<'s>(range: &'s str, bounds: &Bounds) -> Result<(), ScheduleError<'s>> {
    let mut parts = range.split('/');
    let (span, step) = (parts.next().unwrap_or_default(), parts.next());
    let ends: Vec<&str> = span.split('-').collect();
    let (start, mut end) = match ends.as_slice() {
        ["*" | "?", ..] => (bounds.min, bounds.max),
        [first, last] => (number_or_name(first, bounds)?, number_or_name(last, bounds)?),
        [first, _, ..] => {
            number_or_name(first, bounds)?;
            return Err(ScheduleError::Hyphens(range));
        }
        // Without a hyphen.
        _ => number_or_name(span, bounds).map(|number| (number, number))?,
    };
    let mut every = 1;
    if let Some(step) = step {
        if parts.next().is_some() {
            return Err(ScheduleError::Slashes(range));
        }
        every = number(step)?;
        // `3/2` extends to the end.
        if ends.len() == 1 {
            end = bounds.max;
        }
    }
    let (min, max) = (bounds.min, bounds.max);
    if start < min {
        return Err(ScheduleError::Low { start, min, range });
    }
    if end > max {
        return Err(ScheduleError::High { end, max, range });
    }
    if start > end {
        return Err(ScheduleError::Reversed { start, end, range });
    }
    if every == 0 {
        return Err(ScheduleError::Step(range));
    }
    Ok(())
}

fn number_or_name<'s>(text: &'s str, bounds: &Bounds) -> Result<i64, ScheduleError<'s>> {
    let named = bounds.names.iter().position(|name| text.eq_ignore_ascii_case(name));
    match named.and_then(|at| i64::try_from(at).ok()) {
        Some(at) => Ok(bounds.min.saturating_add(at)),
        None => number(text),
    }
}

fn number(text: &str) -> Result<i64, ScheduleError<'_>> {
    match atoi(text) {
        Err(error) => Err(ScheduleError::Number { text, error }),
        Ok(number) if number < 0 => Err(ScheduleError::Negative { number, text }),
        Ok(number) => Ok(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_are_read_as_the_controller_reads_them() {
        let told = |schedule: &str| check(schedule).err().map_or_else(String::new, |error| error.to_string());
        for fine in [
            "*/5 * * * *",
            "0 0 1,15 JAN-mar ?",
            "@hourly",
            "@every 1h30m",
            "TZ=UTC 1 2 3 4 5",
            "3/2 * * * 0-6",
        ] {
            assert_eq!(told(fine), "", "{fine}");
        }
        for (schedule, why) in [
            ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
            ("60 * * * *", "end of range (60) above maximum (59): 60"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            ("5-3 * * * *", "beginning of range (5) beyond end of range (3): 5-3"),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
            ("1/2/3 * * * *", "too many slashes: 1/2/3"),
            ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
            ("x * * * *", "failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax"),
            ("@never", "unrecognized descriptor: @never"),
            ("TZ=Nowhere * * * * *", "provided bad location Nowhere: unknown time zone Nowhere"),
        ] {
            assert_eq!(told(schedule), why, "{schedule}");
        }
    }
}
