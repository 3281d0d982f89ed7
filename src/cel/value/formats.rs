//! Strings of a document that expressions see as bytes, durations and timestamps: `byte`, `duration`, `date` and
//! `date-time`, read as kube-openapi's `strfmt` reads them.

use bumpalo::Bump;

use super::{Duration, EvalError, Timestamp, room};
use crate::library::go::{duration, timestamp};

/// Base64 with the URL alphabet and padding, as Go's `base64.URLEncoding`; line breaks are skipped.
pub(super) fn bytes<'a>(arena: &'a Bump, text: &str) -> Result<&'a [u8], EvalError> {
    let refuse = |at: usize| {
        let message = format!("Invalid byte formatted string {text}: illegal base64 data at input byte {at}");
        EvalError::Other(message.into())
    };
    let mut out = room(arena, text.len())?;
    let (mut group, mut count, mut padding) = (0_u32, 0_u32, 0_u32);
    for (at, byte) in text.bytes().enumerate() {
        let digit = match byte {
            b'\r' | b'\n' => continue,
            b'=' if count >= 2 && count.saturating_add(padding) < 4 => {
                padding = padding.saturating_add(1);
                continue;
            }
            _ if padding > 0 => return Err(refuse(at)),
            b'A'..=b'Z' => byte.wrapping_sub(b'A'),
            b'a'..=b'z' => byte.wrapping_sub(b'a').wrapping_add(26),
            b'0'..=b'9' => byte.wrapping_sub(b'0').wrapping_add(52),
            b'-' => 62,
            b'_' => 63,
            _ => return Err(refuse(at)),
        };
        group = (group << 6) | u32::from(digit);
        count = count.saturating_add(1);
        if count == 4 {
            out.extend_from_slice(group.to_be_bytes().get(1..).unwrap_or_default());
            (group, count) = (0, 0);
        }
    }
    match (count, padding) {
        (0, 0) => {}
        (2, 2) => out.extend_from_slice((group << 12).to_be_bytes().get(1..2).unwrap_or_default()),
        (3, 1) => out.extend_from_slice((group << 6).to_be_bytes().get(1..3).unwrap_or_default()),
        _ => return Err(refuse(text.len())),
    }
    Ok(out.into_bump_slice())
}

/// A Go duration (`1h30m`), or numbers with longer unit names (`3 days`), which add up.
pub(super) fn span(text: &str) -> Result<Duration, EvalError> {
    duration::parse(text).or_else(|| worded_duration(text)).map(Duration).ok_or_else(|| {
        EvalError::Other(format!("Invalid duration {text}: unable to parse {text} as duration").into())
    })
}

/// A `date-time` (RFC 3339, the offset optional; empty is the epoch) or a `date`.
pub(super) fn instant(text: &str) -> Result<Timestamp, EvalError> {
    if text.is_empty() {
        return Ok(Timestamp { seconds: 0, nanos: 0, offset: 0 });
    }
    date_time(text).ok_or_else(|| {
        let layout = "2006-01-02T15:04:05";
        let text = format!(
            "Invalid date-time formatted string {text}: parsing time {text:?} as {layout:?}: cannot parse"
        );
        EvalError::Other(text.into())
    })
}

const NANOS: i64 = 1_000_000_000;

/// Units by name; a name that is the last of its unit stands for every word that begins with it.
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

fn date_time(text: &str) -> Option<Timestamp> {
    const DATE: usize = "2006-01-02".len();
    timestamp::parse(text).or_else(|| {
        // Without an offset the time is UTC; without a time the day begins.
        let missing = if text.len() == DATE { "T00:00:00Z" } else { "Z" };
        timestamp::parse(&format!("{text}{missing}"))
    })
}
