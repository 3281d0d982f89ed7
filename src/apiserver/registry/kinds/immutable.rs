//! Immutable ConfigMaps and Secrets.

use serde_json::Value;

use crate::status::{Cause, Causes};

/// What changed although `immutable` was set; `fields` hold the content.
pub(super) fn changes(object: &Value, old: &Value, fields: &[&str]) -> Causes {
    let is_set = |object: &Value| object.get("immutable") == Some(&Value::Bool(true));
    if !is_set(old) {
        return Causes::default();
    }
    let changed = fields.iter().filter(|field| object.get(**field) != old.get(**field));
    let unset = (!is_set(object)).then_some(&"immutable");
    let why = "field is immutable when `immutable` is set";
    unset.into_iter().chain(changed).map(|field| Cause::forbidden(*field, why)).collect()
}
