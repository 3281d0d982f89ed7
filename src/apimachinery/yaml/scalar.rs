//! Resolves plain scalars as Kubernetes' YAML parser (sigs.k8s.io/yaml over go-yaml 2): by YAML 1.1, then converted to JSON
//! types. `yes` is a boolean, `010` is eight, `1.0` becomes an integer in JSON, a date stays a string.

use granit_parser::{ScalarStyle, Tag};
use serde_json::{Number, Value};

use super::position::Position;
use super::tree::YamlError;
use crate::go;

/// Returns the name of a standard YAML tag.
fn core(tag: Option<&Tag>) -> Option<String> {
    tag.and_then(|tag| tag.suffix_in_namespace("tag:yaml.org,2002:")).map(Into::into)
}

/// Returns the value of a scalar with that style and tag.
pub(super) fn value(
    text: &str,
    style: ScalarStyle,
    tag: Option<&Tag>,
    here: Position,
) -> Result<Value, YamlError> {
    match core(tag).as_deref() {
        Some("str") => Ok(text.into()),
        // The decoded bytes become a string.
        Some("binary") => match go::json::bytes(text) {
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned().into()),
            Err(_) => Err(YamlError::new(here, "!!binary value contains invalid base64 data")),
        },
        _ if style != ScalarStyle::Plain => Ok(text.into()),
        _ => resolve(text).map_err(|error| YamlError::new(here, error.to_string())),
    }
}

/// Whether a key is the merge key: `<<` without quotes, or with the tag for that.
pub(super) fn merges(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> bool {
    text == "<<" && (tag.is_none() && style == ScalarStyle::Plain || core(tag).as_deref() == Some("merge"))
}

/// Whether `text` without quotes would be parsed as anything but this string: here, or by parsers that support larger numbers,
/// base 60, or times.
pub(super) fn is_mistaken(text: &str) -> bool {
    let digits = || text.chars().filter(|c| *c != '_').collect::<String>();
    matches!(text, "<<" | "=")
        || resolve(text).ok().is_none_or(|value| value != text)
        || begins_number(text) && (is_number(&digits()) || is_base_60(text) || is_time(text))
}

/// An infinity, or NaN.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is no JSON value")]
struct NotJson(String);

/// Returns the value of an unquoted scalar; an error if JSON has no such value.
fn resolve(text: &str) -> Result<Value, NotJson> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Value::Null),
        "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" | "true" | "True" | "TRUE" => {
            return Ok(true.into());
        }
        "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" | "false" | "False" | "FALSE" => {
            return Ok(false.into());
        }
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" | "-.inf" | "-.Inf" | "-.INF" | ".nan"
        | ".NaN" | ".NAN" => return Err(NotJson(text.to_owned())),
        _ => {}
    }
    if !begins_number(text) {
        return Ok(text.into());
    }
    let digits: String = text.chars().filter(|c| *c != '_').collect();
    if let Some(integer) = integer(&digits) {
        return Ok(Value::Number(integer));
    }
    if !is_float(&digits) {
        return Ok(text.into());
    }
    match digits.parse::<f64>() {
        Ok(float) if float.is_finite() => Ok(number(float)),
        // A number out of range stays a string in Go's parser.
        _ => Ok(text.into()),
    }
}

fn begins_number(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.'))
}

/// Converts a double as Go's JSON encoder and Kubernetes' decoder do.
fn number(float: f64) -> Value {
    Number::from_f64(float).map_or(Value::Null, |number| Value::Number(go::json::reread(&number)))
}

/// Parses an integer with a sign and the bases of Go's literals: `0x`, `0o`, `0b`, and a leading zero for octal.
fn integer(digits: &str) -> Option<Number> {
    let (radix, rest) = radix(unsigned(digits));
    let magnitude = is_whole(radix, rest).then(|| u64::from_str_radix(rest, radix).ok())??;
    if digits.starts_with('-') {
        let value = 0_i128.checked_sub(i128::from(magnitude))?;
        return i64::try_from(value).ok().map(Number::from);
    }
    Some(Number::from(magnitude))
}

/// Whether the digits are a number of any size.
fn is_number(digits: &str) -> bool {
    let (radix, rest) = radix(unsigned(digits));
    is_whole(radix, rest) || is_float(digits)
}

fn unsigned(digits: &str) -> &str {
    digits.strip_prefix(['-', '+']).unwrap_or(digits)
}

/// Whether all characters are digits; `from_str_radix` would accept a second sign.
fn is_whole(radix: u32, digits: &str) -> bool {
    !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix))
}

/// Whether a text is a base-60 number of YAML 1.1, such as `190:20:30.15`.
fn is_base_60(text: &str) -> bool {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let Some((first, sixtieths)) = unsigned(whole).split_once(':') else { return false };
    let digits = |part: &str| part.chars().all(|c| c.is_ascii_digit() || c == '_');
    first.starts_with(|c: char| c.is_ascii_digit())
        && digits(first)
        && digits(fraction)
        && sixtieths.split(':').all(|part| part.len() < 3 && part.parse::<u8>().is_ok_and(|part| part < 60))
}

/// Whether a text is a date or a time: `2006-1-2`, `2006-1-2T15:4:5.9Z` and `2006-1-2 15:4:5.9`.
fn is_time(text: &str) -> bool {
    let (day, time) = text.split_once(['T', 't', ' ']).unwrap_or((text, ":"));
    let lengths: Vec<_> = day.split('-').map(|part| is_whole(10, part).then_some(part.len())).collect();
    matches!(lengths.as_slice(), [Some(4), Some(1 | 2), Some(1 | 2)])
        && time.contains(':')
        && time.chars().all(|c| c.is_ascii_digit() || ":.,+-Z ".contains(c))
}

fn radix(digits: &str) -> (u32, &str) {
    let lower =
        |prefix: &str, upper: &str| digits.strip_prefix(prefix).or_else(|| digits.strip_prefix(upper));
    if let Some(rest) = lower("0x", "0X") {
        (16, rest)
    } else if let Some(rest) = lower("0b", "0B") {
        (2, rest)
    } else if let Some(rest) = lower("0o", "0O") {
        (8, rest)
    } else if let Some(rest) = digits.strip_prefix('0').filter(|rest| !rest.is_empty()) {
        (8, rest)
    } else {
        (10, digits)
    }
}

/// Whether a text matches `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`.
fn is_float(text: &str) -> bool {
    let text = unsigned(text);
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let digits = |text: &str| text.chars().all(|c| c.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mantissa_fits = digits(whole) && digits(fraction) && !(whole.is_empty() && fraction.is_empty());
    let exponent_fits = exponent.is_none_or(|exponent| {
        let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        !exponent.is_empty() && digits(exponent)
    });
    mantissa_fits && exponent_fits
}
