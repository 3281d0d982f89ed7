//! Changes a rejected object as the validation error suggests. A solver's model satisfies the types of
//! fields, but not all other validation; the result is one more candidate.

use admit_policy::Status;
use admit_policy::schema::{Schema, SchemaType};
use serde_json::{Map, Value, json};

use super::model::anything;
use super::sample;

/// The maximum number of times that a server is asked about one object.
const ROUNDS: usize = 8;
/// Sample values for strings, one per round.
const TEXTS: [&str; ROUNDS] = ["a", "10.0.0.1", "a.a", "a.a/a", "/a", "1", "10.0.0.0/24", "http://a"];
/// The maximum depth of a field that is changed.
const DEEPEST: usize = 32;

/// Returns the object after the changes, whether it is valid then or not.
pub(super) fn mended(
    refusal: impl Fn(&Value) -> Option<Status>,
    schema: &Schema,
    mut object: Value,
) -> Value {
    for round in 1..=ROUNDS {
        let Some(refusal) = refusal(&object) else { return object };
        let mut is_changed = false;
        for (at, cause) in refusal.causes().iter().enumerate() {
            let steps = steps(&cause.field);
            let number = round.saturating_mul(10).saturating_add(at);
            is_changed |= mend(&mut object, schema, &steps, (&cause.reason, &cause.message), number);
        }
        if !is_changed {
            return object;
        }
    }
    object
}

/// Splits a path such as `spec.ports[0].name` into names and indices.
fn steps(field: &str) -> Vec<&str> {
    field.split(['.', '[', ']']).filter(|step| !step.is_empty()).take(DEEPEST).collect()
}

/// Changes or inserts a value at a path; returns whether anything changed.
fn mend(
    value: &mut Value,
    schema: &Schema,
    steps: &[&str],
    (reason, message): (&str, &str),
    number: usize,
) -> bool {
    let Some((step, below)) = steps.split_first() else { return false };
    match value {
        Value::Array(items) => {
            let Some(schema) = schema.items.as_deref() else { return false };
            // Some errors on lists name no index.
            let Ok(at) = step.parse::<usize>() else {
                let mend = |item: &mut Value| mend(item, schema, steps, (reason, message), number);
                return items.iter_mut().filter_map(|item| mend(item).then_some(())).count() > 0;
            };
            let Some(item) = items.get_mut(at) else { return false };
            if below.is_empty() {
                return change(item, schema, (reason, message), number);
            }
            mend(item, schema, below, (reason, message), number)
        }
        Value::Object(map) => {
            let has_entries = schema.properties.is_empty();
            let Some(schema) = schema.properties.get(*step).or_else(|| schema.additional_schema()) else {
                return false;
            };
            if !below.is_empty() {
                let child = map.entry(*step).or_insert_with(|| some(schema));
                return mend(child, schema, below, (reason, message), number);
            }
            if reason == "FieldValueInvalid" && has_entries && rename(map, step) {
                return true;
            }
            let known = map.get_mut(*step);
            match (reason, known) {
                ("FieldValueRequired", _) => {
                    let (before, now) = (map.get(*step).cloned(), some(schema));
                    map.insert((*step).to_owned(), now.clone());
                    before != Some(now)
                }
                // An omitted field was read as its zero value.
                ("FieldValueInvalid", None) => {
                    let mut child = anything(schema);
                    let is_changed = change(&mut child, schema, (reason, message), number);
                    map.insert((*step).to_owned(), child);
                    is_changed
                }
                (_, None) => false,
                (_, Some(child)) => {
                    change(child, schema, (reason, message), number) || map.shift_remove(*step).is_some()
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Renames the first invalid key of a map to one that most maps allow; false if there is none to rename.
fn rename(map: &mut Map<String, Value>, name: &str) -> bool {
    let usual: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    if usual == name || usual.is_empty() || map.contains_key(&usual) {
        return false;
    }
    let entry = map.shift_remove(name);
    map.extend(entry.map(|entry| (usual, entry)));
    true
}

/// Replaces a rejected value by another one; false if no other is known.
fn change(value: &mut Value, schema: &Schema, refused: (&str, &str), number: usize) -> bool {
    let Some(other) = other(value, schema, refused, number) else { return false };
    let is_changed = *value != other;
    *value = other;
    is_changed
}

fn other(value: &Value, schema: &Schema, (reason, message): (&str, &str), number: usize) -> Option<Value> {
    Some(match (reason, value) {
        ("FieldValueDuplicate", Value::String(text)) => json!(format!("{text}{number}")),
        ("FieldValueNotSupported", _) => match message.split_once("supported values: \"") {
            Some((_, members)) => json!(members.split('"').next().unwrap_or_default()),
            None => return None,
        },
        ("FieldValueInvalid", Value::String(_)) => json!(TEXTS.get(number.checked_div(10)?.checked_sub(1)?)?),
        ("FieldValueInvalid", _) => some(schema),
        _ => return None,
    })
}

/// Returns a value of a type that many fields accept.
fn some(schema: &Schema) -> Value {
    match &schema.schema_type {
        _ if schema.int_or_string => json!(1),
        Some(SchemaType::String) => match sample::text(schema) {
            Some(text) if !text.is_empty() => json!(text),
            _ => json!("a"),
        },
        Some(SchemaType::Integer | SchemaType::Number) => json!(1),
        Some(SchemaType::Boolean) => json!(true),
        Some(SchemaType::Array) => {
            let item = schema.items.as_deref().filter(|item| !item.is_type(&SchemaType::Array)).map(some);
            Value::Array(item.into_iter().collect())
        }
        Some(SchemaType::Object | SchemaType::Other(_)) | None => json!({}),
    }
}
