//! Decodes an object the way kube-apiserver decodes the result of a strategic merge patch or of an apply: not from JSON but
//! from maps, field by field in the order of the type, with its own errors and with numbers truncated to the size of
//! their fields.

use admit_apimachinery::go;
use serde_json::{Map, Number, Value};

use super::go_names;
use super::model::{Field, Tables, TypeId, TypeRef};
use super::scalar::{self, ScalarError};
use crate::interrupt;

/// A value that its field cannot hold, in the words of apimachinery's converter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RestoreError {
    #[error("cannot restore struct from: {0}")]
    Struct(&'static str),
    #[error("cannot restore map from {0}")]
    Map(&'static str),
    #[error("cannot restore slice from {0}")]
    Slice(&'static str),
    #[error("error decoding from json: {0}")]
    Bytes(ScalarError),
    /// A number where another type is required.
    #[error("cannot convert {found} to {wanted}")]
    Number { found: &'static str, wanted: String },
    /// The type of a field whose value has another type.
    #[error("unrecognized type: {0}")]
    Type(&'static str),
    /// An error of a type that parses its JSON itself.
    #[error(transparent)]
    Scalar(#[from] ScalarError),
    #[error("json: cannot unmarshal {found} into Go value of type {wanted}")]
    Mistyped { found: String, wanted: &'static str },
}

/// Decodes the object, with its numbers truncated to the sizes of their fields.
///
/// # Errors
/// The first value that its field cannot hold, in field order.
pub(crate) fn restore(tables: &Tables, id: TypeId, mut value: Value) -> Result<Value, RestoreError> {
    check(tables, id, &value)?;
    cut_message(tables, id, &mut value);
    Ok(value)
}

/// Checks whether [`restore`] can decode the object.
///
/// # Errors
/// As [`restore`].
fn check(tables: &Tables, id: TypeId, value: &Value) -> Result<(), RestoreError> {
    match value {
        Value::Object(members) => fields(tables, id, members),
        Value::Null => Ok(()),
        other => Err(RestoreError::Struct(kind_of(other))),
    }
}

fn fields(tables: &Tables, id: TypeId, members: &Map<String, Value>) -> Result<(), RestoreError> {
    let definition = tables.get(id);
    for field in &definition.fields {
        match &field.kind {
            TypeRef::Message(embedded) if field.name.is_empty() => fields(tables, *embedded, members)?,
            kind => {
                if let Some(member) = members.get(field.name) {
                    Place { tables, owner: (definition.package.alias, definition.name), field }
                        .value(kind, member)?;
                }
            }
        }
    }
    Ok(())
}

/// Truncates the numbers of a checked message.
fn cut_message(tables: &Tables, id: TypeId, value: &mut Value) {
    let Value::Object(members) = value else { return };
    for field in tables.flat_fields(id) {
        if let Some(member) = members.get_mut(field.name) {
            cut(tables, &field.kind, member);
        }
    }
}

fn cut(tables: &Tables, kind: &TypeRef, value: &mut Value) {
    interrupt::checkpoint();
    match (kind, value) {
        (TypeRef::Pointer(inner), value) => cut(tables, inner, value),
        (TypeRef::Message(id), value) => cut_message(tables, *id, value),
        (TypeRef::List(inner), Value::Array(items)) => {
            items.iter_mut().for_each(|item| cut(tables, inner, item))
        }
        (TypeRef::Map(inner), Value::Object(members)) => {
            members.values_mut().for_each(|member| cut(tables, inner, member));
        }
        (TypeRef::Int32 | TypeRef::Int64, value @ Value::Number(_)) => {
            if let Value::Number(number) = &*value
                && let Ok(whole) = whole(kind, number)
            {
                *value = whole;
            }
        }
        _ => {}
    }
}

/// A field of a message.
#[derive(Clone, Copy)]
struct Place<'t> {
    tables: &'t Tables,
    owner: (&'static str, &'static str),
    field: &'t Field,
}

impl Place<'_> {
    fn value(self, kind: &TypeRef, value: &Value) -> Result<(), RestoreError> {
        interrupt::checkpoint();
        match (kind, value) {
            (_, Value::Null) => Ok(()),
            (TypeRef::Pointer(inner), _) => self.value(inner, value),
            (TypeRef::Message(id), _) => check(self.tables, *id, value),
            (TypeRef::List(inner), Value::Array(items)) => {
                items.iter().try_for_each(|item| self.value(inner, item))
            }
            (TypeRef::Map(inner), Value::Object(members)) => {
                members.values().try_for_each(|member| self.value(inner, member))
            }
            (TypeRef::Map(_), _) => Err(RestoreError::Map(kind_of(value))),
            (TypeRef::Bytes, Value::String(text)) => {
                scalar::base64(text).map(drop).map_err(RestoreError::Bytes)
            }
            (TypeRef::Bytes, Value::Array(_)) => Ok(()),
            (TypeRef::List(_) | TypeRef::Bytes, _) => Err(RestoreError::Slice(kind_of(value))),
            (TypeRef::String | TypeRef::Enum(_), Value::String(_))
            | (TypeRef::Bool, Value::Bool(_))
            | (TypeRef::Float64, Value::Number(_)) => Ok(()),
            (TypeRef::String | TypeRef::Enum(_), Value::Number(number)) if number.is_i64() => {
                Err(RestoreError::Number { found: "int64", wanted: self.text_type(kind) })
            }
            (TypeRef::Int32 | TypeRef::Int64, Value::Number(number)) => whole(kind, number).map(drop),
            (TypeRef::Time | TypeRef::MicroTime | TypeRef::Quantity | TypeRef::IntOrString, _) => {
                read_itself(kind, value)
            }
            (TypeRef::String | TypeRef::Enum(_), _) => Err(RestoreError::Type("string")),
            (TypeRef::Bool, _) => Err(RestoreError::Type("bool")),
            (TypeRef::Int32, _) => Err(RestoreError::Type("int32")),
            (TypeRef::Int64, _) => Err(RestoreError::Type("int64")),
            (TypeRef::Float64, _) => Err(RestoreError::Type("float64")),
            (
                TypeRef::Raw(_)
                | TypeRef::SchemaOrArray(_)
                | TypeRef::SchemaOrBool(_)
                | TypeRef::SchemaOrStrings(_),
                _,
            ) => Ok(()),
        }
    }

    fn text_type(self, kind: &TypeRef) -> String {
        match kind {
            TypeRef::Enum(id) => format!("v1.{}", self.tables.enumeration(*id).name),
            _ => go_names::field(self.owner, self.field.name).map_or("string", go_names::element).to_owned(),
        }
    }
}

/// Truncates an integer to the bits of its field.
fn whole(kind: &TypeRef, number: &Number) -> Result<Value, RestoreError> {
    let size = if *kind == TypeRef::Int32 { "int32" } else { "int64" };
    let Some(integer) = go::json::reread(number).as_i64() else {
        return Err(RestoreError::Number { found: "float64", wanted: size.to_owned() });
    };
    let cut = i32::from_le_bytes(integer.to_le_bytes().first_chunk().copied().unwrap_or_default());
    Ok(if *kind == TypeRef::Int32 { cut.into() } else { integer.into() })
}

/// Checks values of types that parse their JSON themselves.
fn read_itself(kind: &TypeRef, value: &Value) -> Result<(), RestoreError> {
    let no_text = |wanted: &'static str| {
        let found = match value {
            Value::Number(_) if wanted == "int32" => format!("number {}", go::json::text(value)),
            other => go::json::kind(other).to_owned(),
        };
        Err(RestoreError::Mistyped { found, wanted })
    };
    match (kind, value) {
        (TypeRef::Quantity, Value::String(text)) => Ok(scalar::quantity(text).map(drop)?),
        (TypeRef::Quantity, other) => Ok(scalar::quantity(&other.to_string()).map(drop)?),
        (TypeRef::IntOrString, Value::String(_)) => Ok(()),
        (TypeRef::IntOrString, Value::Number(number))
            if number.as_i64().is_some_and(|own| i32::try_from(own).is_ok()) =>
        {
            Ok(())
        }
        (TypeRef::IntOrString, _) => no_text("int32"),
        (_, Value::String(text)) => Ok(scalar::time(text, *kind == TypeRef::MicroTime).map(drop)?),
        _ => no_text("string"),
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "invalid",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    }
}
