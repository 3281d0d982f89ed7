//! Computes hashes of configurations: 32-bit FNV-1a over compact JSON with sorted members, in decimal, as upstream stores
//! them. Pure.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

/// The constants of FNV.
const OFFSET: u32 = 0x811c_9dc5;
const PRIME: u32 = 0x0100_0193;
/// The hash of an empty configuration.
const EMPTY: &str = "-1";

fn fnv(bytes: &[u8]) -> u32 {
    bytes.iter().fold(OFFSET, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(PRIME))
}

/// Returns the hash of settings without those for which `left_out` is true.
#[must_use]
pub fn of_data(data: &BTreeMap<String, String>, left_out: impl Fn(&str) -> bool) -> String {
    let hashed: BTreeMap<_, _> = data.iter().filter(|(key, _)| !left_out(key)).collect();
    if hashed.is_empty() {
        return EMPTY.to_owned();
    }
    of(&hashed)
}

/// Returns the hash of a value's JSON with sorted members.
#[must_use]
pub fn of(what: &impl Serialize) -> String {
    // These types always serialize; an error would look like an unchanged empty value.
    let value = serde_json::to_value(what).unwrap_or_default();
    let mut text = String::new();
    canonical(&value, &mut text);
    fnv(text.as_bytes()).to_string()
}

/// Writes compact JSON with sorted members, escaped as by Go's encoder.
fn canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(members) => {
            let sorted: BTreeMap<_, _> = members.iter().collect();
            out.push('{');
            for (at, (name, value)) in sorted.into_iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                text(name, out);
                out.push(':');
                canonical(value, out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                canonical(item, out);
            }
            out.push(']');
        }
        Value::String(value) => text(value, out),
        Value::Null | Value::Bool(_) | Value::Number(_) => out.push_str(&value.to_string()),
    }
}

fn text(text: &str, out: &mut String) {
    for c in Value::from(text).to_string().chars() {
        match c {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            other => out.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn cy_03_the_vectors_of_upstream_hold() {
        let interval = |key: &str| key == "validation.interval";
        let cases = [
            (data(&[("connect.cluster", "value1")]), "1768911245"),
            (data(&[("connect.cluster", "cluster01"), ("validation.interval", "60")]), "1480767004"),
            (data(&[("connect.cluster", "cluster02"), ("validation.interval", "60")]), "361613641"),
            (data(&[("validation.interval", "60")]), "-1"),
            (data(&[]), "-1"),
        ];
        for (data, expected) in cases {
            assert_eq!(of_data(&data, interval), expected, "{data:?}");
        }
    }

    #[test]
    fn texts_are_escaped_as_go_does_it() {
        let mut out = String::new();
        canonical(&serde_json::json!({"b": [1, true, null], "a": "<&>\u{2028}\"\n"}), &mut out);
        assert_eq!(out, "{\"a\":\"\\u003c\\u0026\\u003e\\u2028\\\"\\n\",\"b\":[1,true,null]}");
    }
}
