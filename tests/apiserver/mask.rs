//! What changes with every run, replaced by placeholders: versions, uids, times, the ends of generated names.

use serde_json::Value;

/// The value with placeholders, without managedFields.
pub fn masked(value: &Value) -> Value {
    let mut value = value.clone();
    mask(&mut value, "");
    value
}

fn mask(value: &mut Value, key: &str) {
    match value {
        Value::Object(fields) => {
            fields.shift_remove("managedFields");
            let generated = fields.get("generateName").and_then(Value::as_str).map(str::to_owned);
            if let (Some(prefix), Some(Value::String(name))) = (generated, fields.get_mut("name")) {
                *name = format!("{prefix}XXXXX");
            }
            for (key, field) in fields.iter_mut() {
                mask(field, key);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| mask(item, key)),
        Value::String(text) => {
            *text = match key {
                "resourceVersion" => "<rv>".to_owned(),
                "uid" => "<uid>".to_owned(),
                "creationTimestamp" | "deletionTimestamp" => "<time>".to_owned(),
                "message" => in_text(text),
                _ => return,
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Times, uids and versions within a sentence.
fn in_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let (length, replacement) = if shaped(rest, "9999-99-99T99:99:99Z\\\"") {
            (20, "2000-01-01T00:00:00Z")
        } else if let Some(digits) = version(rest) {
            (digits, "resourceVersion\\\":\\\"0")
        } else if shaped(rest, "ffffffff-ffff-ffff-ffff-ffffffffffff") {
            (36, "<uid>")
        } else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
            continue;
        };
        out.push_str(replacement);
        rest = &rest[length..];
    }
    out
}

/// The length of a version with its name before it, as JSON within a JSON text.
fn version(text: &str) -> Option<usize> {
    let digits = text.strip_prefix("resourceVersion\\\":\\\"")?;
    let rest = digits.trim_start_matches(|c: char| c.is_ascii_digit());
    Some(text.len() - rest.len())
}

/// Whether the text begins in the shape of the pattern: `9` stands for a digit, `f` for a hexadecimal one.
fn shaped(text: &str, pattern: &str) -> bool {
    text.len() >= pattern.len()
        && text.bytes().zip(pattern.bytes()).all(|(c, p)| match p {
            b'9' => c.is_ascii_digit(),
            b'f' => c.is_ascii_hexdigit(),
            p => c == p,
        })
}
