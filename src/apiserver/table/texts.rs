//! Formats strings for cells: values at a path, ages, labels and selectors.

use admit_apimachinery::pointer;
pub(super) use admit_apimachinery::pointer::{items, text};
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::duration;

pub(super) fn name(object: &Value) -> Value {
    text(object, "/metadata/name").into()
}

/// Formats the time since the object was created.
pub(super) fn age(object: &Value, now: Timestamp) -> String {
    match text(object, "/metadata/creationTimestamp") {
        "" => "<unknown>".to_owned(),
        created => elapsed(created, now),
    }
}

pub(super) fn elapsed(since: &str, now: Timestamp) -> String {
    since
        .parse::<Timestamp>()
        .map_or_else(|_| "<unknown>".to_owned(), |since| duration::human(now.as_second() - since.as_second()))
}

pub(super) fn or(text: &str, fallback: &str) -> String {
    if text.is_empty() { fallback.to_owned() } else { text.to_owned() }
}

/// Formats the value; strings have no quotes.
pub(super) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

pub(super) fn count(object: &Value, path: &str) -> usize {
    match object.pointer(path) {
        Some(Value::Object(members)) => members.len(),
        Some(Value::Array(items)) => items.len(),
        _ => 0,
    }
}

/// Formats a selector, or labels alone: `a=b,c in (d,e)`; `<none>` if it is empty.
pub(crate) fn selector_text(selector: Option<&Value>) -> String {
    let Some(selector) = selector else { return "<none>".to_owned() };
    // Each term with its key, to sort by.
    let mut terms: Vec<(String, String)> = Vec::new();
    let labels = |labels: &Value| -> Vec<(String, String)> {
        let labels = labels.as_object().into_iter().flatten();
        labels.map(|(key, value)| (key.clone(), format!("{key}={}", plain(value)))).collect()
    };
    if selector.as_object().is_some_and(|members| members.values().all(Value::is_string)) {
        terms.extend(labels(selector));
    }
    terms.extend(selector.get("matchLabels").map(labels).unwrap_or_default());
    for expression in items(selector, "/matchExpressions") {
        let key = text(expression, "/key");
        let mut values: Vec<String> = items(expression, "/values").iter().map(plain).collect();
        values.sort();
        let values = values.join(",");
        let term = match text(expression, "/operator") {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        };
        terms.push((key.to_owned(), term));
    }
    terms.sort_by(|(one, _), (other, _)| one.cmp(other));
    let terms: Vec<String> = terms.into_iter().map(|(_, term)| term).collect();
    if terms.is_empty() { "<none>".to_owned() } else { terms.join(",") }
}

/// Returns the values at `path` of each item of a list.
pub(super) fn each(object: &Value, list: &str, path: &str) -> Vec<String> {
    let items = pointer::items(object, list).iter();
    items.filter_map(|item| item.pointer(path)).map(plain).collect()
}

pub(super) fn labels(labels: Option<&Value>) -> String {
    let pairs = labels.and_then(Value::as_object).into_iter().flat_map(Map::iter);
    let pairs: Vec<String> = pairs.map(|(key, value)| format!("{key}={}", plain(value))).collect();
    or(&pairs.join(","), "<none>")
}
