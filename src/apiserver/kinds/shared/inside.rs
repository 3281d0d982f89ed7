//! Formats values in kube-apiserver's internal form, which some errors print, and the difference of two of them.

use admit_apimachinery::diff;
use admit_apimachinery::field_error::BadValue;
use serde_json::Value;

use crate::builtin::{internal, tables};

/// Converts a value of the type with that OpenAPI name to the internal form.
pub(crate) fn shown(openapi: &str, value: &Value) -> Value {
    if value.is_null() {
        return Value::Null;
    }
    let tables = tables();
    tables.by_openapi_name(openapi).map(|id| internal(tables, id, value)).unwrap_or_default()
}

/// Whether two values of the type with that OpenAPI name are equal; quantities may be written differently.
pub(crate) fn alike(openapi: &str, one: &Value, other: &Value) -> bool {
    one == other || tables().by_openapi_name(openapi).is_some_and(|id| tables().alike(id, one, other))
}

/// Formats a value in the internal form for errors: members in order, with Go's escapes.
pub(crate) fn told(value: &Value) -> BadValue {
    let text = value.to_string();
    BadValue::Verbatim(text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026"))
}

/// Returns a line diff of two values in the internal form; empty for long ones.
pub(crate) fn difference(old: &Value, new: &Value) -> String {
    if is_long(old, MOST_VALUES) || is_long(new, MOST_VALUES) {
        return String::new();
    }
    diff::unified(&indented(old), &indented(new))
}

/// Values with more nested values than this get no diff: each has a line of its own.
const MOST_VALUES: usize = 50_000;

/// Whether the value has `most` or more nested values, which is too many for a diff.
pub(crate) fn is_long(value: &Value, most: usize) -> bool {
    fn counted(value: &Value, left: &mut usize) {
        *left = left.saturating_sub(1);
        match value {
            _ if *left == 0 => {}
            Value::Array(items) => items.iter().for_each(|item| counted(item, left)),
            Value::Object(members) => members.values().for_each(|member| counted(member, left)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let mut left = most;
    counted(value, &mut left);
    left == 0
}

/// Formats JSON with one blank for each level.
pub(crate) fn indented(value: &Value) -> String {
    let pretty = format!("{value:#}");
    let halved = pretty.lines().map(|line| {
        let text = line.trim_start();
        let depth = line.len().saturating_sub(text.len()) / 2;
        format!("{}{text}", " ".repeat(depth))
    });
    halved.collect::<Vec<_>>().join("\n")
}
