//! Strings of a document that expressions see as bytes, durations and timestamps: `byte`, `duration`, `date` and
//! `date-time`, read as kube-openapi's `strfmt` reads them.

use bumpalo::Bump;

use super::{Duration, EvalError, Timestamp, room};

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
pub(super) fn duration(text: &str) -> Result<Duration, EvalError> {
    go_duration(text).or_else(|| worded_duration(text)).map(Duration).ok_or_else(|| {
        EvalError::Other(format!("Invalid duration {text}: unable to parse {text} as duration").into())
    })
}

/// A `date-time` (RFC 3339, the offset optional; empty is the epoch) or a `date`.
pub(super) fn timestamp(text: &str) -> Result<Timestamp, EvalError> {
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

fn go_duration(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    let mut total = 0_i128;
    loop {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at_checked(end)?;
        let end = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at_checked(end)?;
        let unit = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => NANOS,
            "m" => 60_i64.wrapping_mul(NANOS),
            "h" => 3_600_i64.wrapping_mul(NANOS),
            _ => return None,
        };
        total = total.checked_add(scaled(number, unit)?)?;
        rest = tail;
        if rest.is_empty() {
            break;
        }
    }
    i64::try_from(if negative { total.checked_neg()? } else { total }).ok()
}

/// A decimal number of a unit, in nanoseconds, rounded down.
fn scaled(number: &str, unit: i64) -> Option<i128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let mut total = whole.checked_mul(i128::from(unit))?;
    let mut place = i128::from(unit).checked_mul(NANOS.into())?;
    for digit in fraction.chars() {
        place = place.checked_div(10)?;
        let digit = i128::from(digit.to_digit(10)?);
        total = total.checked_add(digit.checked_mul(place)?.checked_div(NANOS.into())?)?;
    }
    Some(total)
}

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
    let mut fields = Fields { rest: text };
    let (year, month, day) = (fields.number(4)?, fields.after('-', 2)?, fields.after('-', 2)?);
    let days = days_since_epoch(year, month, day)?;
    if fields.rest.is_empty() {
        return Some(Timestamp { seconds: days.checked_mul(86_400)?, nanos: 0, offset: 0 });
    }
    let (hour, minute, second) = (fields.after('T', 2)?, fields.after(':', 2)?, fields.after(':', 2)?);
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let nanos = fields.fraction()?;
    let offset = fields.offset()?;
    let clock = hour.checked_mul(3_600)?.checked_add(minute.checked_mul(60)?)?.checked_add(second)?;
    let seconds = days.checked_mul(86_400)?.checked_add(clock)?.checked_sub(offset.into())?;
    Some(Timestamp { seconds, nanos, offset })
}

/// What is left of a timestamp.
struct Fields<'t> {
    rest: &'t str,
}

impl Fields<'_> {
    fn number(&mut self, digits: usize) -> Option<i64> {
        let (number, rest) = self.rest.split_at_checked(digits)?;
        if !number.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        self.rest = rest;
        number.parse().ok()
    }

    fn after(&mut self, separator: char, digits: usize) -> Option<i64> {
        self.rest = self.rest.strip_prefix(separator)?;
        self.number(digits)
    }

    /// Digits after a point or comma; those beyond the ninth are cut off.
    fn fraction(&mut self) -> Option<u32> {
        let Some(digits) = self.rest.strip_prefix(['.', ',']) else { return Some(0) };
        let (digits, rest) =
            digits.split_at_checked(digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len()))?;
        if digits.is_empty() {
            return None;
        }
        self.rest = rest;
        format!("{digits:0<9}").get(..9)?.parse().ok()
    }

    /// `Z`, `+hh:mm`, or nothing.
    fn offset(&mut self) -> Option<i32> {
        if self.rest.is_empty() || self.rest == "Z" {
            return Some(0);
        }
        let sign = if self.rest.starts_with('-') { -1 } else { 1 };
        let hours = self.after(if sign < 0 { '-' } else { '+' }, 2)?;
        let minutes = self.after(':', 2)?;
        if hours > 24 || minutes > 59 || !self.rest.is_empty() {
            return None;
        }
        let seconds = hours.checked_mul(3_600)?.checked_add(minutes.checked_mul(60)?)?;
        i32::try_from(seconds).ok()?.checked_mul(sign)
    }
}

/// Days from 1970-01-01 to a day of the Gregorian calendar; none where there is no such day.
fn days_since_epoch(year: i64, month: i64, day: i64) -> Option<i64> {
    let date =
        jiff::civil::Date::new(year.try_into().ok()?, month.try_into().ok()?, day.try_into().ok()?).ok()?;
    let span = jiff::civil::date(1970, 1, 1).until(date).ok()?;
    Some(span.get_days().into())
}
