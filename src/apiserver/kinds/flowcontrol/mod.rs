//! Lists the kinds of `flowcontrol.apiserver.k8s.io`.
//!
//! Read from pkg/apis/flowcontrol/validation/validation.go and pkg/apis/flowcontrol/v1/defaults.go.

mod fixed;
mod flow_schema;
mod priority_level;

use std::collections::HashSet;

use admit_apimachinery::findings::FieldErrors;
use serde_json::Value;

use super::Strategy;
use super::field::Field;
use crate::object;

pub(super) const KINDS: &[Strategy] = &[flow_schema::STRATEGY, priority_level::STRATEGY];

/// The name of the schema with the highest precedence, and of the level without limits.
const EXEMPT: &str = "exempt";

/// Sets a number that is absent, or zero if `zero_is_absent`.
fn set_number(owner: &mut Value, name: &str, zero_is_absent: bool, default: i64) {
    let is_absent = |value: &Value| {
        value.is_null() || (zero_is_absent && value.as_i64().is_some_and(|number| number == 0))
    };
    if owner.is_object() && owner.get(name).is_none_or(is_absent) {
        object::set_field(owner, name, Some(default.into()));
    }
}

/// Condition types must be unique and not empty.
fn status(object: &Value, errors: &mut FieldErrors) {
    let mut types = HashSet::new();
    for condition in Field::root(object).get("status").get("conditions").items() {
        let kind = condition.get("type");
        if !types.insert(kind.text()) {
            errors.add(|| kind.duplicate());
        }
        if kind.text().is_empty() {
            errors.add(|| kind.required(""));
        }
    }
}
