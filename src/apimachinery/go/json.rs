//! Writes JSON, and reads bytes and numbers in it, as Go's `encoding/json`; also formats decoded numbers as `%v`.

use std::fmt::Write as _;

use serde_json::{Number, Value};

use super::base64::{self, Alphabet, Padding};
use super::float;

/// Decodes a byte string as `encoding/json`: padded standard base64, ignoring line breaks.
///
/// # Errors
/// When a character is invalid.
pub fn bytes(text: &str) -> Result<Vec<u8>, CorruptInput> {
    base64::decode(text, Alphabet::Standard, Padding::Required).map_err(CorruptInput)
}

/// The offset where a text is not base64, with the message of Go's `CorruptInputError`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("illegal base64 data at input byte {0}")]
pub struct CorruptInput(pub usize);

/// Returns Kubernetes' message about a value without a kind, such as one that is not an object.
#[must_use]
pub fn without_kind(value: &Value) -> String {
    format!(
        "couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go value of type struct {{ APIVersion string \
         \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}",
        kind(value)
    )
}

/// Formats a decoded JSON number as `%v`.
#[must_use]
pub fn number(value: &Number) -> String {
    match value.as_i64() {
        Some(i) => i.to_string(),
        None => float::general(value.as_f64().unwrap_or(f64::NAN)),
    }
}

/// Writes a value as `json.Marshal`: keys sorted, `<`, `>` and `&` escaped.
#[must_use]
pub fn text(value: &Value) -> String {
    let mut out = String::new();
    push(&mut out, value);
    out
}

fn push(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(n) => match n.as_i64() {
            Some(i) => out.push_str(&i.to_string()),
            None => out.push_str(&float::json(n.as_f64().unwrap_or(f64::NAN))),
        },
        Value::String(s) => push_string(out, s),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                push(out, item);
            }
            out.push(']');
        }
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by_key(|(key, _)| key.as_str());
            out.push('{');
            for (i, (key, item)) in entries.into_iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                push_string(out, key);
                out.push(':');
                push(out, item);
            }
            out.push('}');
        }
    }
}

/// Appends a JSON string as `encoding/json` writes it.
pub fn push_string(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\x1f' => {
                // Writing to a string does not fail.
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// Returns the name of a JSON value's type in messages of Go's decoder.
#[must_use]
pub const fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Returns Go's `%T` of a decoded value: a number that does not fit in a signed 64-bit integer is a double.
#[must_use]
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// Returns the number after Go's encoder wrote it and Kubernetes' decoder read it again: a whole double below 10²¹ is written
/// without fraction and exponent, so it becomes an integer if it fits in 64 bits.
#[must_use]
pub fn reread(number: &Number) -> Number {
    const INTEGRAL_BELOW: f64 = 1e21;
    if number.is_i64() {
        return number.clone();
    }
    let whole = number.as_f64().filter(|double| double.fract() == 0.0 && double.abs() < INTEGRAL_BELOW);
    let Some(double) = whole else { return number.clone() };
    // The shortest digits that identify the double, and zeros.
    let text = double.to_string();
    let integer = text.parse::<i64>().map(Number::from).or_else(|_| text.parse::<u64>().map(Number::from));
    integer.unwrap_or_else(|_| number.clone())
}

/// Returns a document with all numbers [`reread`].
#[must_use]
pub fn rewritten(mut value: Value) -> Value {
    rewrite(&mut value);
    value
}

fn rewrite(value: &mut Value) {
    match value {
        Value::Object(members) => members.values_mut().for_each(rewrite),
        Value::Array(items) => items.iter_mut().for_each(rewrite),
        Value::Number(number) => *number = reread(number),
        _ => {}
    }
}
