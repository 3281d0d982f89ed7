//! Finds escapes of JSON that Go's YAML parser rejects.

use granit_parser::{Event, ScalarStyle};

use super::events::{next_with_span, parser};
use super::position::Position;
use super::tree::YamlError;

/// Returns the first escape of a quoted string that Go's YAML parser rejects although JSON has it: a slash, and surrogates (the
/// halves of characters above U+FFFF).
///
/// ```
/// # use admit_apimachinery::yaml::unread_escape;
/// let error = unread_escape(r#"{"a": "\ud83d\ude00"}"#).unwrap();
/// assert!(error.message.ends_with("found invalid Unicode character escape code"));
/// assert!(unread_escape(r#"{"a": "\\/", "b": "\u00e9"}"#).is_none());
/// ```
#[must_use]
pub fn unread_escape(text: &str) -> Option<YamlError> {
    // Hardly any text contains these, so parsing it again is rare.
    if !text.contains("\\/") && !text.contains("\\ud") && !text.contains("\\uD") {
        return None;
    }
    let mut parser = parser(text);
    while let Ok(Some((event, span))) = next_with_span(&mut parser) {
        if !matches!(event, Event::Scalar(_, ScalarStyle::DoubleQuoted, ..)) {
            continue;
        }
        let quoted = span.byte_range().and_then(|range| text.get(range)).unwrap_or_default();
        if let Some((at, why)) = unread(quoted) {
            let lines = quoted.get(..at).unwrap_or_default().matches('\n').count();
            let position = Position { line: span.start.line().saturating_add(lines), column: 1 };
            return Some(YamlError::new(position, format!("while parsing a quoted scalar, {why}")));
        }
    }
    None
}

/// Returns the offset of the first such escape in a quoted string, with the error message.
fn unread(quoted: &str) -> Option<(usize, &'static str)> {
    let mut bytes = quoted.bytes().enumerate();
    while let Some((at, byte)) = bytes.next() {
        if byte != b'\\' {
            continue;
        }
        match bytes.next() {
            Some((_, b'/')) => return Some((at, "found unknown escape character")),
            Some((from, b'u')) if is_half(quoted.get(from.saturating_add(1)..).unwrap_or_default()) => {
                return Some((at, "found invalid Unicode character escape code"));
            }
            _ => {}
        }
    }
    None
}

/// Whether the four digits are those of a surrogate.
fn is_half(digits: &str) -> bool {
    let number = digits.get(..4).and_then(|digits| u32::from_str_radix(digits, 16).ok());
    number.is_some_and(|number| (0xd800..0xe000).contains(&number))
}
