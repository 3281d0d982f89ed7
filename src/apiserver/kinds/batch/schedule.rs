//! Schedules of CronJobs, in the words of the parser that Kubernetes uses (github.com/robfig/cron/v3).

use admit_apimachinery::go;
use admit_apimachinery::go::integer::atoi;
use admit_apimachinery::go::zone::ZoneError;

/// One of the five parts: its least and greatest number, and names that stand for numbers, counted from the least.
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

/// What is wrong with a schedule.
pub(super) fn check(schedule: &str) -> Result<(), String> {
    let zoned = schedule.starts_with("TZ=") || schedule.starts_with("CRON_TZ=");
    let rest = match schedule.split_once('=').filter(|_| zoned) {
        Some((_, rest)) => {
            let (zone, rest) = rest.split_once(' ').unwrap_or((rest, ""));
            zone_exists(zone).map_err(|why| format!("provided bad location {zone}: {why}"))?;
            rest.trim()
        }
        None => schedule,
    };
    if rest.starts_with('@') {
        return descriptor(rest);
    }
    let parts: Vec<&str> = rest.split_whitespace().collect();
    if parts.len() != FIELDS.len() {
        let found = parts.len();
        return Err(format!("expected exactly 5 fields, found {found}: [{}]", parts.join(" ")));
    }
    parts.iter().zip(&FIELDS).try_for_each(|(part, bounds)| {
        part.split(',').filter(|range| !range.is_empty()).try_for_each(|range| check_range(range, bounds))
    })
}

/// Whether there is a time zone of that name.
pub(super) fn zone_exists(zone: &str) -> Result<(), ZoneError> {
    go::zone::offset_at(zone, 0).map(drop)
}

fn descriptor(text: &str) -> Result<(), String> {
    match text.strip_prefix("@every ") {
        Some(span) => go::duration::parse(span)
            .map(drop)
            .map_err(|error| format!("failed to parse duration {text}: {error}")),
        None if DESCRIPTORS.contains(&text) => Ok(()),
        None => Err(format!("unrecognized descriptor: {text}")),
    }
}

/// One of the ranges of a part: `*`, `3`, `3-5`, each with `/2` or without.
fn check_range(range: &str, bounds: &Bounds) -> Result<(), String> {
    let mut parts = range.split('/');
    let (span, step) = (parts.next().unwrap_or_default(), parts.next());
    let ends: Vec<&str> = span.split('-').collect();
    let (start, mut end) = match ends.as_slice() {
        ["*" | "?", ..] => (bounds.min, bounds.max),
        [one] => number_or_name(one, bounds).map(|number| (number, number))?,
        [first, last] => (number_or_name(first, bounds)?, number_or_name(last, bounds)?),
        [first, ..] => {
            number_or_name(first, bounds)?;
            return Err(format!("too many hyphens: {range}"));
        }
        [] => return Err(format!("failed to parse int from {range}: empty")),
    };
    let mut every = 1;
    if let Some(step) = step {
        if parts.next().is_some() {
            return Err(format!("too many slashes: {range}"));
        }
        every = number(step)?;
        // `3/2` goes on to the end.
        if ends.len() == 1 {
            end = bounds.max;
        }
    }
    let (min, max) = (bounds.min, bounds.max);
    if start < min {
        return Err(format!("beginning of range ({start}) below minimum ({min}): {range}"));
    }
    if end > max {
        return Err(format!("end of range ({end}) above maximum ({max}): {range}"));
    }
    if start > end {
        return Err(format!("beginning of range ({start}) beyond end of range ({end}): {range}"));
    }
    if every == 0 {
        return Err(format!("step of range should be a positive number: {range}"));
    }
    Ok(())
}

fn number_or_name(text: &str, bounds: &Bounds) -> Result<i64, String> {
    let named = bounds.names.iter().position(|name| text.eq_ignore_ascii_case(name));
    match named.and_then(|at| i64::try_from(at).ok()) {
        Some(at) => Ok(bounds.min.saturating_add(at)),
        None => number(text),
    }
}

fn number(text: &str) -> Result<i64, String> {
    match atoi(text) {
        Err(why) => Err(format!("failed to parse int from {text}: {why}")),
        Ok(number) if number < 0 => Err(format!("negative number ({number}) not allowed: {text}")),
        Ok(number) => Ok(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_are_read_as_the_controller_reads_them() {
        let told = |schedule: &str| check(schedule).err().unwrap_or_default();
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
