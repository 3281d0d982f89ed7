//! Parses times as Go's `time.Parse` with the layouts that Kubernetes uses, and Go's error messages. Callers check the range of the
//! instant.

use std::fmt;
use std::str::FromStr;

use super::instant::{Timestamp, days_in_month, seconds_of};
use super::quote::OfTime;

/// The layout of a time; all but the first are for certain fields and formats of Kubernetes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// RFC 3339, with a fraction of any length or none.
    Rfc3339,
    /// RFC 3339 with a fraction of six digits.
    Rfc3339Micro,
    /// A date and a time without an offset, which is UTC.
    Local,
    /// A date, which means its beginning in UTC.
    Date,
}

/// Why Go rejects a text.
#[derive(Clone, Copy, Debug)]
pub struct ParseError<'t> {
    text: &'t str,
    layout: Layout,
    problem: Problem<'t>,
}

#[derive(Clone, Copy, Debug)]
enum Problem<'t> {
    /// The part of the layout that the rest of the text does not match.
    Element(&'static str, &'t str),
    Range(&'static str),
    Extra(&'t str),
}

/// Parses a text as tolerantly as Go: one-digit hours, a comma before the fraction, offsets up to 24:60, digits after the
/// ninth dropped.
///
/// # Errors
/// Go's error message: `parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"`.
pub fn parse(layout: Layout, text: &str) -> Result<Timestamp, ParseError<'_>> {
    read(layout, text).map_err(|problem| ParseError { text, layout, problem })
}

/// Why a text is not a time, with Go's message: `parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimestampError(String);

impl fmt::Display for TimestampError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TimestampError {}

impl Timestamp {
    /// Parses a time as Go's `time.Parse` does.
    ///
    /// # Errors
    /// Go's error message.
    pub fn parse(layout: Layout, text: &str) -> Result<Self, TimestampError> {
        parse(layout, text).map_err(|error| TimestampError(error.to_string()))
    }
}

impl FromStr for Timestamp {
    type Err = TimestampError;

    fn from_str(text: &str) -> Result<Self, TimestampError> {
        Self::parse(Layout::Rfc3339, text)
    }
}

fn read(layout: Layout, text: &str) -> Result<Timestamp, Problem<'_>> {
    let mut input = Input(text);
    let year = input.number("2006", 4, 4)?;
    input.literal("-")?;
    let month = input.bounded("01", 2, 1..=12, "month")?;
    input.literal("-")?;
    let day = input.number("02", 2, 2)?;
    let (mut clock, mut nanos, mut offset) = ((0, 0, 0), 0, 0);
    if layout != Layout::Date {
        input.literal("T")?;
        let hour = input.bounded("15", 1, 0..=23, "hour")?;
        input.literal(":")?;
        let minute = input.bounded("04", 2, 0..=59, "minute")?;
        input.literal(":")?;
        clock = (hour, minute, input.bounded("05", 2, 0..=59, "second")?);
        nanos = if layout == Layout::Rfc3339Micro { input.micros()? } else { input.fraction() };
        offset = if layout == Layout::Local { 0 } else { input.offset()? };
    }
    if !input.0.is_empty() {
        return Err(Problem::Extra(input.0));
    }
    // The day is compared with its month after everything is parsed.
    if day < 1 || day > days_in_month(year, month) {
        return Err(Problem::Range("day"));
    }
    let local = seconds_of((year, month, day), clock);
    Ok(Timestamp { seconds: local.saturating_sub(i64::from(offset)), nanos, offset })
}

impl std::error::Error for ParseError<'_> {}

impl Layout {
    const fn text(self) -> &'static str {
        match self {
            Self::Rfc3339 => "2006-01-02T15:04:05Z07:00",
            Self::Rfc3339Micro => "2006-01-02T15:04:05.000000Z07:00",
            Self::Local => "2006-01-02T15:04:05",
            Self::Date => "2006-01-02",
        }
    }
}

impl fmt::Display for ParseError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "parsing time {}", OfTime(self.text))?;
        match self.problem {
            Problem::Element(element, rest) => {
                let (layout, rest) = (OfTime(self.layout.text()), OfTime(rest));
                write!(f, " as {layout}: cannot parse {rest} as {}", OfTime(element))
            }
            Problem::Range(part) => write!(f, ": {part} out of range"),
            Problem::Extra(rest) => write!(f, ": extra text: {}", OfTime(rest)),
        }
    }
}

/// The rest of the text; unchanged after an error.
struct Input<'t>(&'t str);

impl<'t> Input<'t> {
    fn literal(&mut self, expected: &'static str) -> Result<(), Problem<'t>> {
        self.0 = self.0.strip_prefix(expected).ok_or(Problem::Element(expected, self.0))?;
        Ok(())
    }

    /// Parses a number of `least` to `most` digits, as many as there are.
    fn number(&mut self, element: &'static str, least: usize, most: usize) -> Result<i64, Problem<'t>> {
        let count = self.0.bytes().take(most).take_while(u8::is_ascii_digit).count();
        let split = self.0.split_at_checked(count).filter(|_| count >= least);
        let (number, rest) = split.ok_or(Problem::Element(element, self.0))?;
        self.0 = rest;
        Ok(decimal(number.as_bytes()))
    }

    /// Parses a number of up to two digits in a range; Go consumes it before it checks the range.
    fn bounded(
        &mut self,
        element: &'static str,
        least: usize,
        range: std::ops::RangeInclusive<i64>,
        part: &'static str,
    ) -> Result<i64, Problem<'t>> {
        let number = self.number(element, least, 2)?;
        if range.contains(&number) { Ok(number) } else { Err(Problem::Range(part)) }
    }

    /// Parses nanoseconds of `.123` or `,123`, which may also follow if the layout has none; 0 without a fraction.
    fn fraction(&mut self) -> u32 {
        let Some(after) = self.0.strip_prefix(['.', ',']) else { return 0 };
        let count = after.bytes().take_while(u8::is_ascii_digit).count();
        let Some((digits, rest)) = after.split_at_checked(count).filter(|_| count > 0) else { return 0 };
        self.0 = rest;
        nanoseconds(digits.as_bytes())
    }

    fn micros(&mut self) -> Result<u32, Problem<'t>> {
        const ELEMENT: &str = ".000000";
        let (fraction, rest) =
            self.0.split_at_checked(ELEMENT.len()).ok_or(Problem::Element(ELEMENT, self.0))?;
        let digits = fraction.strip_prefix(['.', ',']).filter(|d| d.bytes().all(|b| b.is_ascii_digit()));
        let digits = digits.ok_or(Problem::Element(ELEMENT, self.0))?;
        self.0 = rest;
        Ok(nanoseconds(digits.as_bytes()))
    }

    /// Parses `Z` or `±hh:mm` to seconds.
    fn offset(&mut self) -> Result<i32, Problem<'t>> {
        let wrong = Problem::Element("Z07:00", self.0);
        if let Some(rest) = self.0.strip_prefix('Z') {
            self.0 = rest;
            return Ok(0);
        }
        let (offset, rest) = self.0.split_at_checked(6).ok_or(wrong)?;
        let &[sign, h1, h2, b':', m1, m2] = offset.as_bytes() else { return Err(wrong) };
        let digits = [h1, h2, m1, m2];
        if !digits.iter().all(u8::is_ascii_digit) {
            return Err(wrong);
        }
        let [h1, h2, m1, m2] = digits.map(|b| i32::from(b.wrapping_sub(b'0')));
        let (hours, minutes) = (h1.wrapping_mul(10).wrapping_add(h2), m1.wrapping_mul(10).wrapping_add(m2));
        // Go accepts 24 hours and 60 minutes, and reports range errors before an invalid sign.
        if hours > 24 {
            return Err(Problem::Range("time zone offset hour"));
        }
        if minutes > 60 {
            return Err(Problem::Range("time zone offset minute"));
        }
        let seconds = hours.wrapping_mul(60).wrapping_add(minutes).wrapping_mul(60);
        let seconds = match sign {
            b'+' => seconds,
            b'-' => seconds.wrapping_neg(),
            _ => return Err(wrong),
        };
        self.0 = rest;
        Ok(seconds)
    }
}

fn nanoseconds(digits: &[u8]) -> u32 {
    (0..9).fold(0_u32, |nanos, place| {
        let digit = digits.get(place).map_or(0, |b| b.wrapping_sub(b'0'));
        nanos.wrapping_mul(10).wrapping_add(u32::from(digit))
    })
}

fn decimal(digits: &[u8]) -> i64 {
    digits.iter().fold(0, |n: i64, b| n.wrapping_mul(10).wrapping_add(i64::from(b.wrapping_sub(b'0'))))
}

#[cfg(test)]
mod tests {
    use super::super::instant::{MAX_SECONDS, MIN_SECONDS};
    use super::*;

    fn told(layout: Layout, text: &str) -> Result<String, String> {
        parse(layout, text).map(|instant| instant.to_string()).map_err(|error| error.to_string())
    }

    #[test]
    fn reads_rfc_3339_with_the_words_of_go() {
        let element = |text: &str, rest: &str, element: &str| {
            format!(
                "parsing time \"{text}\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"{rest}\" as \"{element}\""
            )
        };
        let range = |text: &str, part: &str| format!("parsing time \"{text}\": {part} out of range");
        for (text, read) in [
            ("1970-01-01T00:00:00Z", Ok("1970-01-01T00:00:00Z")),
            ("2024-02-29T23:59:59.120+02:30", Ok("2024-02-29T23:59:59.12+02:30")),
            ("2020-01-01T1:00:00Z", Ok("2020-01-01T01:00:00Z")),
            ("2020-01-01T01:00:00,5Z", Ok("2020-01-01T01:00:00.5Z")),
            ("2020-01-01T01:00:00.1234567899Z", Ok("2020-01-01T01:00:00.123456789Z")),
            ("0000-01-01T00:00:00-00:00", Ok("0000-01-01T00:00:00Z")),
            ("2023-02-29T00:00:00Z", Err(range("2023-02-29T00:00:00Z", "day"))),
            ("2023-13-29T00:00:00Z", Err(range("2023-13-29T00:00:00Z", "month"))),
            ("2020-01-01T24:00:00Z", Err(range("2020-01-01T24:00:00Z", "hour"))),
            ("2020-01-01T01:00:60Z", Err(range("2020-01-01T01:00:60Z", "second"))),
            ("2020-01-01T01:00:00+25:00", Err(range("2020-01-01T01:00:00+25:00", "time zone offset hour"))),
            ("", Err(element("", "", "2006"))),
            ("x\u{e9}", Err(element("x\\xc3\\xa9", "x\\xc3\\xa9", "2006"))),
            ("2020-1-1T0:0:0Z", Err(element("2020-1-1T0:0:0Z", "1-1T0:0:0Z", "01"))),
            ("2020-01-01 01:00:00Z", Err(element("2020-01-01 01:00:00Z", " 01:00:00Z", "T"))),
            ("2020-01-01T01:00:00", Err(element("2020-01-01T01:00:00", "", "Z07:00"))),
            ("2020-01-01T01:00:00.Z", Err(element("2020-01-01T01:00:00.Z", ".Z", "Z07:00"))),
            ("2020-01-01T01:00:00+1:000", Err(element("2020-01-01T01:00:00+1:000", "+1:000", "Z07:00"))),
            (
                "2020-01-01T01:00:00Zx",
                Err("parsing time \"2020-01-01T01:00:00Zx\": extra text: \"x\"".to_owned()),
            ),
        ] {
            assert_eq!(told(Layout::Rfc3339, text), read.map(ToOwned::to_owned), "{text}");
        }
        let seconds = |text| parse(Layout::Rfc3339, text).map(|instant| instant.seconds).ok();
        assert_eq!(seconds("0001-01-01T00:00:00Z"), Some(MIN_SECONDS));
        assert_eq!(seconds("9999-12-31T23:59:59Z"), Some(MAX_SECONDS));
    }

    #[test]
    fn other_layouts_say_what_they_miss() {
        let at = "2020-01-01T01:00:00";
        for (layout, text, read) in [
            (Layout::Rfc3339Micro, "2020-01-01T01:00:00.123456Z", Ok("2020-01-01T01:00:00.123456Z")),
            (
                Layout::Rfc3339Micro,
                "2020-01-01T01:00:00.5Z",
                Err("as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \".5Z\" as \".000000\""),
            ),
            (Layout::Local, at, Ok("2020-01-01T01:00:00Z")),
            (Layout::Local, "x", Err("as \"2006-01-02T15:04:05\": cannot parse \"x\" as \"2006\"")),
            (Layout::Local, "2020-01-01T01:00:00+01:00", Err(": extra text: \"+01:00\"")),
            (Layout::Date, "2020-01-01", Ok("2020-01-01T00:00:00Z")),
            (Layout::Date, at, Err(": extra text: \"T01:00:00\"")),
        ] {
            match (told(layout, text), read) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{text}"),
                (Err(found), Err(expected)) => assert!(found.ends_with(expected), "{text}: {found}"),
                (found, _) => panic!("{text}: {found:?}"),
            }
        }
    }
}
