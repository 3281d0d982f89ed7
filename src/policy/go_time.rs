//! Times as Go's `time.Parse` reads them by the layout of RFC 3339, with its words for those that it does not read. What
//! instant a text stands for is left to others.

const LAYOUT: &str = "2006-01-02T15:04:05Z07:00";

/// Whether Go reads the text as a time.
///
/// # Errors
/// Go's text: `parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"`.
pub fn check(text: &str) -> Result<(), String> {
    let mut rest = text;
    match read(&mut rest) {
        Ok(()) => Ok(()),
        Err(Problem::Element(element)) => Err(format!(
            "parsing time {} as {}: cannot parse {} as {}",
            quote(text),
            quote(LAYOUT),
            quote(rest),
            quote(element)
        )),
        Err(Problem::Range(part)) => Err(format!("parsing time {}: {part} out of range", quote(text))),
        Err(Problem::Extra) => Err(format!("parsing time {}: extra text: {}", quote(text), quote(rest))),
    }
}

enum Problem {
    /// The part of the layout that the rest of the text does not begin with.
    Element(&'static str),
    Range(&'static str),
    Extra,
}

/// What is left in `rest` is what could not be read.
fn read(rest: &mut &str) -> Result<(), Problem> {
    let year = digits(rest, "2006", 4, 4)?;
    literal(rest, "-")?;
    let month = bounded(rest, "01", 2, 1..=12, "month")?;
    literal(rest, "-")?;
    let day = digits(rest, "02", 2, 2)?;
    literal(rest, "T")?;
    bounded(rest, "15", 1, 0..=23, "hour")?;
    literal(rest, ":")?;
    bounded(rest, "04", 2, 0..=59, "minute")?;
    literal(rest, ":")?;
    bounded(rest, "05", 2, 0..=59, "second")?;
    fraction(rest);
    zone(rest)?;
    if !rest.is_empty() {
        return Err(Problem::Extra);
    }
    let date = (i16::try_from(year), i8::try_from(month), i8::try_from(day));
    let (Ok(year), Ok(month), Ok(day)) = date else { return Err(Problem::Range("day")) };
    jiff::civil::Date::new(year, month, day).map(|_| ()).map_err(|_| Problem::Range("day"))
}

fn literal(rest: &mut &str, expected: &'static str) -> Result<(), Problem> {
    *rest = rest.strip_prefix(expected).ok_or(Problem::Element(expected))?;
    Ok(())
}

/// A number of `min` to `max` digits.
fn digits(rest: &mut &str, element: &'static str, min: usize, max: usize) -> Result<u16, Problem> {
    let count = rest.bytes().take(max).take_while(u8::is_ascii_digit).count();
    let (number, after) =
        rest.split_at_checked(count).filter(|_| count >= min).ok_or(Problem::Element(element))?;
    *rest = after;
    number.parse().map_err(|_| Problem::Element(element))
}

/// A number of up to two digits in a range; Go has read it when it finds that it is out of range.
fn bounded(
    rest: &mut &str,
    element: &'static str,
    min: usize,
    range: std::ops::RangeInclusive<u16>,
    part: &'static str,
) -> Result<u16, Problem> {
    let number = digits(rest, element, min, 2)?;
    if range.contains(&number) { Ok(number) } else { Err(Problem::Range(part)) }
}

/// Seconds may have a fraction although the layout has none.
fn fraction(rest: &mut &str) {
    let after = rest.strip_prefix(['.', ',']).map(|after| (after, after.trim_start_matches(is_digit)));
    if let Some((_, end)) = after.filter(|(after, end)| end.len() < after.len()) {
        *rest = end;
    }
}

fn is_digit(c: char) -> bool {
    c.is_ascii_digit()
}

fn zone(rest: &mut &str) -> Result<(), Problem> {
    const ELEMENT: &str = "Z07:00";
    if let Some(after) = rest.strip_prefix('Z') {
        *rest = after;
        return Ok(());
    }
    let (offset, after) = rest.split_at_checked(6).ok_or(Problem::Element(ELEMENT))?;
    let parts = offset.strip_prefix(['+', '-']).and_then(|clock| clock.split_once(':'));
    let number = |part: &str| part.parse::<u16>().ok().filter(|_| part.chars().all(is_digit));
    let parts = parts.and_then(|(hours, minutes)| Some((number(hours)?, number(minutes)?)));
    match parts.ok_or(Problem::Element(ELEMENT))? {
        (25.., _) => Err(Problem::Range("time zone offset hour")),
        (_, 61..) => Err(Problem::Range("time zone offset minute")),
        _ => {
            *rest = after;
            Ok(())
        }
    }
}

/// The quotes of Go's package `time`: every byte that is not printable ASCII is escaped.
fn quote(text: &str) -> String {
    let mut quoted = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => quoted.extend(['\\', char::from(byte)]),
            b' '..=b'~' => quoted.push(char::from(byte)),
            _ => quoted.push_str(&format!("\\x{byte:02x}")),
        }
    }
    quoted.push('"');
    quoted
}
