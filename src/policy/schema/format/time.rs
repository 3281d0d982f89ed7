//! Checks the formats of dates, date-times and durations.

use admit_apimachinery::go::{Layout, Timestamp, duration};

/// `2006-01-02`, a day that exists.
pub(super) fn is_date(text: &str) -> bool {
    Timestamp::parse(Layout::Date, text).is_ok()
}

/// Checks for a date, `T`, and a time with a zone. As in Go's implementation, hours, minutes and seconds are compared as strings, and
/// anything after a second `T` is ignored.
pub(super) fn is_date_time(text: &str) -> bool {
    let text = text.to_lowercase();
    let mut parts = text.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    is_date(date) && is_time(time)
}

fn is_time(text: &str) -> bool {
    let Some((clock, rest)) = text.split_at_checked(8) else { return false };
    let mut fields = clock.split(':');
    let mut up_to = |max: &str| {
        fields
            .next()
            .is_some_and(|pair| pair.len() == 2 && pair.bytes().all(|b| b.is_ascii_digit()) && pair <= max)
    };
    let bounded = up_to("23") && up_to("59") && up_to("59") && fields.next().is_none();
    bounded && (is_zone(rest) || fraction_end(rest).is_some_and(is_zone))
}

/// What follows a fraction: any one character, then digits.
fn fraction_end(text: &str) -> Option<&str> {
    let mut chars = text.chars();
    chars.next().filter(|c| *c != '\n')?;
    let rest = chars.as_str();
    let end = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    (end.len() < rest.len()).then_some(end)
}

fn is_zone(text: &str) -> bool {
    let offset = text.strip_prefix(['+', '-']).unwrap_or_default();
    text == "z"
        || (offset.len() == 5
            && offset.bytes().enumerate().all(|(i, b)| if i == 2 { b == b':' } else { b.is_ascii_digit() }))
}

/// A duration of Go, or one that has a number with a unit of Scala somewhere.
pub(super) fn is_duration(text: &str) -> bool {
    duration::parse(text).is_ok() || has_scala_duration(text)
}

/// Short names in full; a long name also as the beginning of the unit: `3 seconds`.
const SCALA_UNITS: [(&[&str], &str); 8] = [
    (&["ns"], "nano"),
    (&["us", "\u{b5}s"], "micro"),
    (&["ms"], "milli"),
    (&["s"], "sec"),
    (&["m"], "min"),
    (&["h", "hr"], "hour"),
    (&["d"], "day"),
    (&["w", "wk"], "week"),
];

fn has_scala_duration(text: &str) -> bool {
    let mut rest = text;
    let mut found = false;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let from = rest.get(start..).unwrap_or_default();
        let end = from.find(|c: char| !c.is_ascii_digit()).unwrap_or(from.len());
        let Some((digits, tail)) = from.split_at_checked(end) else { return false };
        let unit_text = tail.trim_start_matches(['\t', '\n', '\x0c', '\r', ' ']);
        let unit_end =
            unit_text.find(|c: char| !(c.is_ascii_alphabetic() || c == '\u{b5}')).unwrap_or(unit_text.len());
        let (unit, after) = unit_text.split_at_checked(unit_end).unwrap_or_default();
        if unit.is_empty() {
            rest = tail;
            continue;
        }
        if digits.parse::<i64>().is_err() {
            return false;
        }
        let unit = unit.to_lowercase();
        found |=
            SCALA_UNITS.iter().any(|(short, long)| short.contains(&unit.as_str()) || unit.starts_with(long));
        rest = after;
    }
    found
}
