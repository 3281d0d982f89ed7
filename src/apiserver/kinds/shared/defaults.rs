//! Sets default values of fields that a client left out.

use serde_json::Value;

use crate::{interrupt, object};

/// Sets members that are absent or null.
pub(crate) fn set_absent(value: &mut Value, defaults: &[(&str, Value)]) {
    interrupt::checkpoint();
    let members = object::map_of(value);
    for (name, default) in defaults {
        if members.get(*name).is_none_or(Value::is_null) {
            members.insert((*name).to_owned(), default.clone());
        }
    }
}

/// Returns the items of a list.
pub(crate) fn each<'v>(value: &'v mut Value, field: &str) -> impl Iterator<Item = &'v mut Value> {
    value.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten()
}

/// Copies the labels of the template to an object without labels.
pub(crate) fn template_labels(object: &mut Value, template: &str) {
    let labels = object.pointer(template).and_then(Value::as_object).filter(|labels| !labels.is_empty());
    if object::meta_map(object, "labels").next().is_none()
        && let Some(labels) = labels.cloned()
    {
        object::set_meta(object, "labels", Some(labels.into()));
    }
}

/// Sets a string that is absent or empty.
pub(crate) fn set_empty(value: &mut Value, field: &str, default: Value) {
    if value.get(field).and_then(Value::as_str).is_none_or(str::is_empty) {
        object::set_field(value, field, Some(default));
    }
}

/// Sets the phase of a status without phase.
pub(crate) fn set_phase(object: &mut Value, phase: &str) {
    let status = object::member_mut(object::map_of(object), "status");
    if status.get("phase").and_then(Value::as_str).is_none_or(str::is_empty) {
        status.insert("phase".to_owned(), phase.into());
    }
}
