//! Go's text forms of values, as Kubernetes prints them in messages: quoted strings (`%q`), numbers (`%v`) and
//! `encoding/json`; and bytes as it reads them. Input: a decoded JSON value; output: text. Says nothing about where the text stands.

use std::fmt::Write as _;

use base64::engine::general_purpose::STANDARD;
use base64::{DecodeError, Engine as _};
use serde_json::{Number, Value};

/// The bytes that `encoding/json` reads from a text: base64 in its padded standard form, line breaks passed over.
///
/// # Errors
/// Go's complaint about the first byte that is out of place.
pub fn bytes(text: &str) -> Result<Vec<u8>, String> {
    let joined: String = text.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    let whole_quads = |length: usize| length.saturating_sub(length % 4);
    STANDARD.decode(&joined).map_err(|error| {
        let at = match error {
            DecodeError::InvalidByte(offset, _) | DecodeError::InvalidLastSymbol { offset, .. } => offset,
            DecodeError::InvalidLength(length) => whole_quads(length),
            DecodeError::InvalidPadding => whole_quads(joined.len()),
        };
        format!("illegal base64 data at input byte {at}")
    })
}

/// `strconv.Quote`: double quotes, Go's escapes, printable Unicode kept.
#[must_use]
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len().saturating_add(2));
    out.push('"');
    for c in text.chars() {
        quote_char(&mut out, c);
    }
    out.push('"');
    out
}

fn quote_char(out: &mut String, c: char) {
    let code = u32::from(c);
    match c {
        '"' => out.push_str("\\\""),
        '\\' => out.push_str("\\\\"),
        '\x07' => out.push_str("\\a"),
        '\x08' => out.push_str("\\b"),
        '\x0c' => out.push_str("\\f"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\x0b' => out.push_str("\\v"),
        c if is_print(c) => out.push(c),
        _ if code < 0x80 => push_escape(out, format_args!("\\x{code:02x}")),
        _ if code < 0x1_0000 => push_escape(out, format_args!("\\u{code:04x}")),
        _ => push_escape(out, format_args!("\\U{code:08x}")),
    }
}

fn push_escape(out: &mut String, escape: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = out.write_fmt(escape);
}

/// `unicode.IsPrint`: letters, marks, numbers, punctuation, symbols and the ASCII space. Rust's `escape_debug` escapes
/// all others, and besides a mark that begins a text: it is asked for one that follows a letter.
pub(crate) fn is_print(c: char) -> bool {
    if c.is_ascii() || c.is_whitespace() {
        return c == ' ' || c.is_ascii_graphic();
    }
    let text = String::from_iter(['a', c]);
    text.escape_debug().eq(text.chars())
}

/// `%v` of a float64: the shortest digits that read back, with an exponent below 1e-4 and from 1e21.
#[must_use]
pub fn float(value: f64) -> String {
    exponent_form(value, 1e-4, true)
}

/// `strconv.FormatFloat(v, 'f', -1, 64)`: the shortest digits, never an exponent.
#[must_use]
pub fn float_plain(value: f64) -> String {
    format!("{value}")
}

/// `encoding/json` of a float64.
fn json_float(value: f64) -> String {
    exponent_form(value, 1e-6, false)
}

fn exponent_form(value: f64, small: f64, pad_negative: bool) -> String {
    let size = value.abs();
    if size == 0.0 || (small..1e21).contains(&size) || !value.is_finite() {
        return go_special(value).unwrap_or_else(|| float_plain(value));
    }
    let text = format!("{value:e}");
    let Some((digits, exponent)) = text.split_once('e') else { return text };
    match exponent.strip_prefix('-') {
        // JSON drops the padding zero of a negative exponent, and only of that.
        Some(e) if !pad_negative => format!("{digits}e-{e}"),
        Some(e) => format!("{digits}e-{e:0>2}"),
        None => format!("{digits}e+{exponent:0>2}"),
    }
}

fn go_special(value: f64) -> Option<String> {
    match value {
        v if v.is_nan() => Some("NaN".to_owned()),
        f64::INFINITY => Some("+Inf".to_owned()),
        f64::NEG_INFINITY => Some("-Inf".to_owned()),
        v if v == 0.0 && v.is_sign_negative() => Some("-0".to_owned()),
        _ => None,
    }
}

/// `%v` of a decoded JSON number.
#[must_use]
pub fn number(value: &Number) -> String {
    match value.as_i64() {
        Some(i) => i.to_string(),
        None => float(value.as_f64().unwrap_or(f64::NAN)),
    }
}

/// `json.Marshal`: keys sorted, `<`, `>` and `&` escaped.
#[must_use]
pub fn json(value: &Value) -> String {
    let mut out = String::new();
    write_json(&mut out, value);
    out
}

fn write_json(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(n) => match n.as_i64() {
            Some(i) => out.push_str(&i.to_string()),
            None => out.push_str(&json_float(n.as_f64().unwrap_or(f64::NAN))),
        },
        Value::String(s) => write_json_string(out, s),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_json(out, item);
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
                write_json_string(out, key);
                out.push(':');
                write_json(out, item);
            }
            out.push('}');
        }
    }
}

/// A JSON string as `encoding/json` writes it.
pub(crate) fn write_json_string(out: &mut String, text: &str) {
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
                push_escape(out, format_args!("\\u{:04x}", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// What Go's decoder calls the kind of a JSON value.
#[must_use]
pub const fn json_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// A number as it is after Go's encoder wrote it and Kubernetes' decoder read it again: a whole double below 10²¹ has
/// neither fraction nor exponent in the text, and so comes back as an integer where 64 bits hold it.
#[must_use]
pub fn reread(number: &Number) -> Number {
    const INTEGRAL_BELOW: f64 = 1e21;
    if number.is_i64() {
        return number.clone();
    }
    let whole = number.as_f64().filter(|double| double.fract() == 0.0 && double.abs() < INTEGRAL_BELOW);
    let Some(double) = whole else { return number.clone() };
    // The digits that tell the double from its neighbours, and zeros.
    let text = double.to_string();
    let integer = text.parse::<i64>().map(Number::from).or_else(|_| text.parse::<u64>().map(Number::from));
    integer.unwrap_or_else(|_| number.clone())
}

/// A document whose numbers were all written and [`reread`].
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
