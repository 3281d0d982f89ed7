//! Finds duplicates in lists: items of sets, keys of map lists. Each is reported once, at its second occurrence.

use std::collections::HashMap;

use admit_apimachinery::field_error::FieldError;
use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::go;
use serde_json::{Map, Value};

use super::{ListType, Schema};
use crate::deadline::Pace;
use crate::read::path::Path;

/// All duplicates below a node. Ends when its time is over.
pub fn validate(value: &Value, schema: &Schema, path: &Path<'_>, errors: &mut FieldErrors, pace: &Pace<'_>) {
    if pace.is_over() {
        return;
    }
    match value {
        Value::Object(map) => {
            for (key, child) in map {
                if let Some(property) = schema.properties.get(key.as_str()) {
                    validate(child, property, &path.child(key), errors, pace);
                }
                if let Some(entry) = schema.additional_schema() {
                    validate(child, entry, &path.key(key), errors, pace);
                }
            }
        }
        Value::Array(items) => {
            match schema.list_type {
                Some(ListType::Set) => set(items, path, errors),
                Some(ListType::Map) => map_list(items, schema, path, errors),
                Some(ListType::Atomic | ListType::Other(_)) | None => {}
            }
            if let Some(item_schema) = &schema.items {
                for (i, item) in items.iter().enumerate() {
                    validate(item, item_schema, &path.index(i), errors, pace);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn set(items: &[Value], path: &Path<'_>, errors: &mut FieldErrors) {
    for i in second_appearances(items.iter().map(distinct_text)) {
        if let Some(item) = items.get(i) {
            errors.add(|| FieldError::duplicate(path.index(i), item));
        }
    }
}

fn map_list(items: &[Value], schema: &Schema, path: &Path<'_>, errors: &mut FieldErrors) {
    if let Some((i, item)) = items.iter().enumerate().find(|(_, item)| !item.is_object() && !item.is_null()) {
        let detail = "must be an object for an array of list-type map";
        errors.add(|| FieldError::invalid(path.index(i), item, detail));
        return;
    }
    let keys: Vec<Value> = items.iter().map(|item| key_of(item, &schema.list_map_keys)).collect();
    for i in second_appearances(keys.iter().map(distinct_text)) {
        if let Some(key) = keys.get(i) {
            errors.add(|| FieldError::duplicate(path.index(i), key));
        }
    }
}

/// Whether two items are the same.
pub(super) fn has_repeated(items: &[Value]) -> bool {
    !second_appearances(items.iter().map(distinct_text)).is_empty()
}

/// The item reduced to its keys; those it lacks are left out.
fn key_of(item: &Value, keys: &[Box<str>]) -> Value {
    let mut reduced = Map::new();
    if let Value::Object(item) = item {
        for key in keys {
            if let Some(value) = item.get(&**key) {
                reduced.insert(key.to_string(), value.clone());
            }
        }
    }
    Value::Object(reduced)
}

/// Text that two values share exactly when Kubernetes calls them the same: scalars by type and value, lists and
/// objects by their JSON.
fn distinct_text(value: &Value) -> String {
    match value {
        // Both zeros are the same.
        Value::Number(number) if number.as_i64().is_none() => {
            format!("f{:?}", number.as_f64().unwrap_or_default() + 0.0)
        }
        value => go::json::text(value),
    }
}

fn second_appearances(texts: impl Iterator<Item = String>) -> Vec<usize> {
    let mut seen: HashMap<String, u32> = HashMap::new();
    let mut second = Vec::new();
    for (i, text) in texts.enumerate() {
        let times = seen.entry(text).or_insert(0);
        if *times == 1 {
            second.push(i);
        }
        *times = times.saturating_add(1);
    }
    second
}
