//! Fills in defaults of a schema. A null where the schema does not allow it counts as absent: it is dropped, or
//! replaced by the default.

use serde_json::Value;

use super::validate::validate;
use super::{Schema, list_type};
use crate::deadline::{Pace, checkpoint};
use crate::read::path::Path;
use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::weight::{self, Budget, TooHeavy};

/// Drops nulls that are neither allowed nor defaulted; run before [`default`] and again after pruning.
/// Ends when its time is over.
pub fn drop_nulls(value: &mut Value, schema: Option<&Schema>, pace: &Pace<'_>) {
    if pace.is_over() {
        return;
    }
    match value {
        Value::Object(map) => {
            map.retain(|key, child| {
                let child_schema = schema.and_then(|schema| schema.child(key));
                let dropped =
                    child.is_null() && child_schema.is_some_and(|s| !s.nullable && s.default.is_none());
                if !dropped {
                    drop_nulls(child, child_schema, pace);
                }
                !dropped
            });
        }
        Value::Array(items) => {
            let item_schema = schema.and_then(|schema| schema.items.as_deref());
            for item in items {
                drop_nulls(item, item_schema, pace);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Sets every absent property that has a default, outermost first, so that defaults of an object that was itself
/// defaulted are filled in too. Ends when its time is over.
pub fn default(value: &mut Value, schema: &Schema, pace: &Pace<'_>) {
    if pace.is_over() {
        return;
    }
    match value {
        Value::Object(map) => {
            for (name, property) in &schema.properties {
                if let Some(default) = &property.default
                    && map.get(&**name).is_none_or(|value| value.is_null() && !property.nullable)
                {
                    map.insert(name.to_string(), default.clone());
                }
            }
            for (key, child) in map.iter_mut() {
                if let Some(property) = schema.properties.get(key.as_str()) {
                    default(child, property, pace);
                } else if let Some(entry) = schema.additional_schema() {
                    replace_null(child, entry);
                    default(child, entry, pace);
                }
            }
        }
        Value::Array(items) => {
            let Some(item_schema) = &schema.items else { return };
            for item in items {
                replace_null(item, item_schema);
                default(item, item_schema, pace);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Reports whether a server refuses objects in which this default of the schema is used, with what the schema adds to it; `duplicates`
/// says whether duplicate items count. Registration looks at less: not at defaults in values of maps, and not at duplicates. A default to
/// which the schema adds more than a server has memory for is refused.
///
/// ```
/// use admit_policy::{Path, schema};
/// use serde_json::json;
///
/// let set = json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"});
/// let set = schema::parse(&set, &Path::Nil).unwrap();
/// assert!(schema::is_default_refused(&json!(["a", "a"]), &set, true));
/// assert!(!schema::is_default_refused(&json!(["a", "a"]), &set, false));
/// assert!(schema::is_default_refused(&json!([1]), &set, false));
/// ```
#[must_use]
pub fn is_default_refused(default: &Value, schema: &Schema, duplicates: bool) -> bool {
    if take_added(default, schema, &mut Budget::of_text(0)).is_err() {
        return true;
    }
    let (mut whole, pace) = (default.clone(), Pace::default());
    self::default(&mut whole, schema, &pace);
    let mut errors = FieldErrors::default();
    if duplicates {
        list_type::validate(&whole, schema, &Path::Nil, &mut errors, &pace);
    }
    !errors.is_empty() || !validate(&whole, schema, None, &Path::Nil, &pace).is_empty()
}

/// Takes the memory that [`default`] would add to the value from the budget: each `{}` of a list may get as much as
/// the schema holds. Stops at the end of the budget.
///
/// # Errors
/// When the budget is spent.
pub fn take_added(value: &Value, schema: &Schema, budget: &mut Budget) -> Result<(), TooHeavy> {
    checkpoint();
    match value {
        Value::Object(map) => {
            for (name, property) in &schema.properties {
                if let Some(default) = &property.default
                    && map.get(&**name).is_none_or(|value| value.is_null() && !property.nullable)
                {
                    budget.take(weight::of_member(name))?;
                    take_whole(default, property, budget)?;
                }
            }
            map.iter().try_for_each(|(key, child)| match schema.properties.get(key.as_str()) {
                Some(property) => take_added(child, property, budget),
                None => schema.additional_schema().map_or(Ok(()), |entry| take_for(child, entry, budget)),
            })
        }
        Value::Array(items) => match &schema.items {
            Some(schema) => items.iter().try_for_each(|item| take_for(item, schema, budget)),
            None => Ok(()),
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

/// Charges for what is added to a value, or for the default that replaces it.
fn take_for(value: &Value, schema: &Schema, budget: &mut Budget) -> Result<(), TooHeavy> {
    match &schema.default {
        Some(default) if value.is_null() && !schema.nullable => take_whole(default, schema, budget),
        _ => take_added(value, schema, budget),
    }
}

fn take_whole(default: &Value, schema: &Schema, budget: &mut Budget) -> Result<(), TooHeavy> {
    budget.take(weight::of(default))?;
    take_added(default, schema, budget)
}

fn replace_null(value: &mut Value, schema: &Schema) {
    if value.is_null()
        && !schema.nullable
        && let Some(default) = &schema.default
    {
        *value = default.clone();
    }
}
