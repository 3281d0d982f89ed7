//! Parses strings of a document that expressions see as bytes, durations and timestamps: `byte`, `duration`, `date` and `date-time`, as
//! kube-openapi's `strfmt` parses them.

use admit_apimachinery::go::base64::{self, Alphabet, Padding};
use admit_apimachinery::go::duration;
use admit_apimachinery::go::layout::{self, Layout};
use bumpalo::Bump;

use super::{Duration, EvalError, Timestamp};

/// Base64 with the URL alphabet and padding, as Go's `base64.URLEncoding`.
pub(super) fn bytes<'a>(arena: &'a Bump, text: &str) -> Result<&'a [u8], EvalError> {
    let bytes = base64::decode(text, Alphabet::Url, Padding::Required).map_err(|at| {
        let message = format!("Invalid byte formatted string {text}: illegal base64 data at input byte {at}");
        EvalError::Other(message.into())
    })?;
    arena.try_alloc_slice_copy(&bytes).map(|bytes| &*bytes).map_err(|_| EvalError::MemoryLimitExceeded)
}

/// A Go duration (`1h30m`), or numbers with longer unit names (`3 days`), which add up.
pub(super) fn span(text: &str) -> Result<Duration, EvalError> {
    duration::parse(text).ok().or_else(|| worded_duration(text)).map(Duration).ok_or_else(|| {
        EvalError::Other(format!("Invalid duration {text}: unable to parse {text} as duration").into())
    })
}

/// A `date-time`: RFC 3339, the offset optional; empty is the epoch.
pub(super) fn instant(text: &str) -> Result<Timestamp, EvalError> {
    if text.is_empty() {
        return Ok(Timestamp { seconds: 0, nanos: 0, offset: 0 });
    }
    layout::parse(Layout::Rfc3339, text).or_else(|_| formatted(Layout::Local, "date-time", text))
}

/// A `date`.
pub(super) fn day(text: &str) -> Result<Timestamp, EvalError> {
    formatted(Layout::Date, "date", text)
}

fn formatted(layout: Layout, format: &str, text: &str) -> Result<Timestamp, EvalError> {
    layout::parse(layout, text).map_err(|error| {
        EvalError::Other(format!("Invalid {format} formatted string {text}: {error}").into())
    })
}

const NANOS: i64 = 1_000_000_000;

/// Units by name; the last name of a unit matches every word that begins with it.
const UNITS: &[(&[&str], i64)] = &[
    (&["ns", "nano"], 1),
    (&["us", "µs", "micro"], 1_000),
    (&["ms", "milli"], 1_000_000),
    (&["s", "sec"], NANOS),
    (&["m", "min"], 60 * NANOS),
    (&["h", "hr", "hour"], 3_600 * NANOS),
    (&["d", "day"], 86_400 * NANOS),
    (&["w", "wk", "week"], 604_800 * NANOS),
];

fn worded_duration(text: &str) -> Option<i64> {
    let mut found = false;
    let mut total = 0_i64;
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let tail = rest.get(start..)?;
        let (number, tail) =
            tail.split_at_checked(tail.find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len()))?;
        let tail = tail.trim_start();
        let end = tail.find(|c: char| !c.is_ascii_alphabetic() && c != 'µ').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at_checked(end)?;
        rest = tail;
        if unit.is_empty() {
            continue;
        }
        let (number, unit): (i64, _) = (number.parse().ok()?, unit.to_lowercase());
        for (names, nanos) in UNITS {
            let matches =
                names.contains(&unit.as_str()) || names.last().is_some_and(|last| unit.starts_with(last));
            if matches {
                found = true;
                total = total.wrapping_add(number.wrapping_mul(*nanos));
            }
        }
    }
    found.then_some(total)
}
