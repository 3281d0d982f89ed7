//! Decides what the encoder writes for a field that is absent, empty or zero, by the rules of the field.

use serde_json::{Map, Value};

use super::super::model::{Field, Tables, TypeRef};

/// Returns what the encoder writes for a field, or None.
pub(super) fn written_form(tables: &Tables, field: &Field, value: Option<Value>) -> Option<Value> {
    match (&field.kind, value) {
        (TypeRef::Pointer(_) | TypeRef::Raw(_), Some(value)) => Some(value),
        // An absent quantity stays absent until the object is stored: leaving it out differs from sending the zero that is
        // read back from storage.
        (TypeRef::Quantity, None) if !field.always_written => None,
        (
            TypeRef::Message(_)
            | TypeRef::Time
            | TypeRef::MicroTime
            | TypeRef::Quantity
            | TypeRef::IntOrString,
            value,
        ) => {
            let value = value.unwrap_or_else(|| zero(tables, &field.kind));
            let empty = value.is_null() || value.as_object().is_some_and(Map::is_empty);
            (!(field.omit_zero && empty)).then_some(value)
        }
        (_, Some(value)) if field.always_written || !is_empty(&value) => Some(value),
        (kind, _) if field.always_written => Some(zero(tables, kind)),
        _ => None,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
    }
}

/// Returns the zero value of a type as the encoder writes it.
pub(super) fn zero(tables: &Tables, kind: &TypeRef) -> Value {
    match kind {
        TypeRef::String | TypeRef::Enum(_) => "".into(),
        TypeRef::Int32 | TypeRef::Int64 | TypeRef::Float64 | TypeRef::IntOrString => 0.into(),
        TypeRef::Bool => false.into(),
        TypeRef::Quantity => "0".into(),
        TypeRef::Message(id) => Value::Object(
            tables
                .flat_fields(*id)
                .into_iter()
                .filter_map(|field| Some((field.name.to_owned(), written_form(tables, field, None)?)))
                .collect(),
        ),
        _ => Value::Null,
    }
}
