//! Reads and writes the metadata of an object that is held as JSON.

use jiff::Timestamp;
use serde_json::{Map, Number, Value};

use crate::interrupt;

/// Sorts the members of all objects in `value` by name, as Go writes maps, and lets `number` format each number.
pub(crate) fn sort_members(value: &mut Value, number: fn(&mut Number)) {
    interrupt::checkpoint();
    match value {
        Value::Object(members) => {
            members.values_mut().for_each(|value| sort_members(value, number));
            members.sort_keys();
        }
        Value::Array(items) => items.iter_mut().for_each(|item| sort_members(item, number)),
        Value::Number(known) => number(known),
        _ => {}
    }
}

/// Returns a field of `metadata`. Unlike a JSON pointer, it allocates nothing.
#[must_use]
pub(crate) fn meta<'v>(object: &'v Value, field: &str) -> Option<&'v Value> {
    object.get("metadata")?.get(field)
}

/// Like [`meta`], to be changed.
pub(crate) fn known_meta_mut<'v>(object: &'v mut Value, field: &str) -> Option<&'v mut Value> {
    object.get_mut("metadata")?.get_mut(field)
}

/// Returns a string field of `metadata`; empty if it is absent or not a string.
#[must_use]
pub(crate) fn meta_str<'v>(object: &'v Value, field: &str) -> &'v str {
    meta(object, field).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the kind; empty if there is none.
#[must_use]
pub(crate) fn kind(object: &Value) -> &str {
    object.get("kind").and_then(Value::as_str).unwrap_or_default()
}

#[must_use]
pub(crate) fn name(object: &Value) -> &str {
    meta_str(object, "name")
}

#[must_use]
pub(crate) fn namespace(object: &Value) -> &str {
    meta_str(object, "namespace")
}

#[must_use]
pub(crate) fn uid(object: &Value) -> &str {
    meta_str(object, "uid")
}

#[must_use]
pub(crate) fn resource_version(object: &Value) -> &str {
    meta_str(object, "resourceVersion")
}

#[must_use]
pub(crate) fn is_terminating(object: &Value) -> bool {
    !meta_str(object, "deletionTimestamp").is_empty()
}

#[must_use]
pub(crate) fn generation(object: &Value) -> i64 {
    meta(object, "generation").and_then(Value::as_i64).unwrap_or_default()
}

#[must_use]
pub(crate) fn finalizers(object: &Value) -> Vec<&str> {
    let list = meta(object, "finalizers").and_then(Value::as_array);
    list.map(|list| list.iter().filter_map(Value::as_str).collect()).unwrap_or_default()
}

/// Returns the string values of a map in `metadata`: `labels`, `annotations`.
pub(crate) fn meta_map<'v>(object: &'v Value, field: &str) -> impl Iterator<Item = (&'v str, &'v str)> {
    let map = meta(object, field).and_then(Value::as_object);
    map.into_iter().flatten().map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
}

#[must_use]
pub(crate) fn label<'v>(object: &'v Value, key: &str) -> Option<&'v str> {
    meta(object, "labels").and_then(|labels| labels.get(key)).and_then(Value::as_str)
}

/// Returns `metadata`, created if it is absent or not an object, like `object` itself.
pub(crate) fn meta_mut(object: &mut Value) -> &mut Map<String, Value> {
    member_mut(map_of(object), "metadata")
}

/// Returns the object `field` of `map`, created if it is absent or of another type.
pub(crate) fn member_mut<'v>(map: &'v mut Map<String, Value>, field: &str) -> &'v mut Map<String, Value> {
    map_of(map.entry(field).or_insert(Value::Null))
}

/// Returns the members of `value`, which becomes an empty object if it is of another type.
pub(crate) fn map_of(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(map) => map,
        // The line above left no other variant; a fresh map keeps this free of a panic.
        other => {
            *other = Value::Object(Map::new());
            map_of(other)
        }
    }
}

/// Sets a field of `metadata`, or removes it when `value` is None.
pub(crate) fn set_meta(object: &mut Value, field: &str, value: Option<Value>) {
    let meta = meta_mut(object);
    match value {
        Some(value) => {
            meta.insert(field.to_owned(), value);
        }
        None => {
            meta.shift_remove(field);
        }
    }
}

/// Copies a metadata field from `from` to `to`; removes it if it is absent.
pub(crate) fn copy_meta(from: &Value, to: &mut Value, field: &str) {
    let value = meta(from, field).cloned();
    set_meta(to, field, value);
}

/// Sets a top-level field, or removes it when `value` is None.
pub(crate) fn set_field(object: &mut Value, field: &str, value: Option<Value>) {
    let map = map_of(object);
    match value {
        Some(value) => {
            map.insert(field.to_owned(), value);
        }
        None => {
            map.shift_remove(field);
        }
    }
}

/// Copies a value without spare capacity: a cloned map has room for up to twice its members.
#[must_use]
pub(crate) fn copied(value: &Value) -> Value {
    interrupt::checkpoint();
    match value {
        Value::Array(items) => items.iter().map(copied).collect(),
        Value::Object(members) => members.iter().map(|(name, value)| (name.clone(), copied(value))).collect(),
        scalar => scalar.clone(),
    }
}

/// Returns the group of an `apiVersion`; empty for the core group.
#[must_use]
pub(crate) fn group_of(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// Formats a time as objects hold it: UTC, whole seconds.
#[must_use]
pub(crate) fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
