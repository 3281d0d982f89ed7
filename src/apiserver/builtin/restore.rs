//! Reads a patched object the way kube-apiserver reads what a strategic merge patch made: not as text but as maps, field by
//! field in the order of the type, with errors of its own and numbers that lose what they have too much.

use admit_policy::go_text::{self, json_kind};
use serde_json::{Map, Number, Value};

use super::model::{Field, Tables, TypeId, TypeRef};
use super::{go_names, scalar};
use crate::interrupt;

/// The object with its numbers cut to the sizes of their fields.
///
/// # Errors
/// The first value that its field cannot hold, in the order of the fields.
pub fn restore(tables: &Tables, id: TypeId, value: &Value) -> Result<Value, String> {
    message(tables, id, value)
}

fn message(tables: &Tables, id: TypeId, value: &Value) -> Result<Value, String> {
    match value {
        Value::Object(members) => {
            let mut restored = members.clone();
            fields(tables, id, &mut restored)?;
            Ok(Value::Object(restored))
        }
        Value::Null => Ok(Value::Null),
        other => Err(format!("cannot restore struct from: {}", kind_of(other))),
    }
}

fn fields(tables: &Tables, id: TypeId, members: &mut Map<String, Value>) -> Result<(), String> {
    let definition = tables.get(id);
    for field in &definition.fields {
        match &field.kind {
            TypeRef::Message(embedded) if field.name.is_empty() => fields(tables, *embedded, members)?,
            kind => {
                if let Some(member) = members.get_mut(field.name) {
                    let place = Place { tables, owner: definition.name, field };
                    *member = place.value(kind, member)?;
                }
            }
        }
    }
    Ok(())
}

/// A field of a type.
#[derive(Clone, Copy)]
struct Place<'t> {
    tables: &'t Tables,
    owner: &'static str,
    field: &'t Field,
}

impl Place<'_> {
    fn value(self, kind: &TypeRef, value: &Value) -> Result<Value, String> {
        interrupt::checkpoint();
        match (kind, value) {
            (_, Value::Null) => Ok(Value::Null),
            (TypeRef::Pointer(inner), _) => self.value(inner, value),
            (TypeRef::Message(id), _) => message(self.tables, *id, value),
            (TypeRef::List(inner), Value::Array(items)) => {
                items.iter().map(|item| self.value(inner, item)).collect()
            }
            (TypeRef::Map(inner), Value::Object(members)) => {
                let restored =
                    members.iter().map(|(name, member)| Ok((name.clone(), self.value(inner, member)?)));
                restored.collect::<Result<Map<_, _>, String>>().map(Value::Object)
            }
            (TypeRef::Map(_), _) => Err(format!("cannot restore map from {}", kind_of(value))),
            (TypeRef::Bytes, Value::String(text)) => {
                scalar::base64(text).map_err(|why| format!("error decoding from json: {why}"))?;
                Ok(value.clone())
            }
            (TypeRef::Bytes, Value::Array(_)) => Ok(value.clone()),
            (TypeRef::List(_) | TypeRef::Bytes, _) => {
                Err(format!("cannot restore slice from {}", kind_of(value)))
            }
            (TypeRef::String | TypeRef::Enum(_), Value::String(_))
            | (TypeRef::Bool, Value::Bool(_))
            | (TypeRef::Float64, Value::Number(_)) => Ok(value.clone()),
            (TypeRef::String | TypeRef::Enum(_), Value::Number(number)) if number.is_i64() => {
                Err(format!("cannot convert int64 to {}", self.text_type(kind)))
            }
            (TypeRef::Int32 | TypeRef::Int64, Value::Number(number)) => whole(kind, number),
            (TypeRef::Time | TypeRef::MicroTime | TypeRef::Quantity | TypeRef::IntOrString, _) => {
                read_itself(kind, value)
            }
            (TypeRef::String | TypeRef::Enum(_), _) => Err("unrecognized type: string".to_owned()),
            (TypeRef::Bool, _) => Err("unrecognized type: bool".to_owned()),
            (TypeRef::Int32, _) => Err("unrecognized type: int32".to_owned()),
            (TypeRef::Int64, _) => Err("unrecognized type: int64".to_owned()),
            (TypeRef::Float64, _) => Err("unrecognized type: float64".to_owned()),
            (
                TypeRef::Raw(_)
                | TypeRef::SchemaOrArray(_)
                | TypeRef::SchemaOrBool(_)
                | TypeRef::SchemaOrStrings(_),
                _,
            ) => Ok(value.clone()),
        }
    }

    fn text_type(self, kind: &TypeRef) -> String {
        match kind {
            TypeRef::Enum(id) => format!("v1.{}", self.tables.enumeration(*id).name),
            _ => go_names::field(self.owner, self.field.name).map_or("string", go_names::element).to_owned(),
        }
    }
}

/// An integer in as many bits as its field has; the rest is lost.
fn whole(kind: &TypeRef, number: &Number) -> Result<Value, String> {
    let size = if *kind == TypeRef::Int32 { "int32" } else { "int64" };
    let Some(integer) = go_text::reread(number).as_i64() else {
        return Err(format!("cannot convert float64 to {size}"));
    };
    let cut = i32::from_le_bytes(integer.to_le_bytes().first_chunk().copied().unwrap_or_default());
    Ok(if *kind == TypeRef::Int32 { cut.into() } else { integer.into() })
}

/// Types that read the text of a value themselves.
fn read_itself(kind: &TypeRef, value: &Value) -> Result<Value, String> {
    let no_text = |expected: &str| {
        let found = match value {
            Value::Number(_) if expected == "int32" => format!("number {}", go_text::json(value)),
            other => json_kind(other).to_owned(),
        };
        Err(format!("json: cannot unmarshal {found} into Go value of type {expected}"))
    };
    match (kind, value) {
        (TypeRef::Quantity, Value::String(text)) => scalar::quantity(text).map(|_| value.clone()),
        (TypeRef::Quantity, other) => scalar::quantity(&other.to_string()).map(|_| value.clone()),
        (TypeRef::IntOrString, Value::String(_)) => Ok(value.clone()),
        (TypeRef::IntOrString, Value::Number(number))
            if number.as_i64().is_some_and(|own| i32::try_from(own).is_ok()) =>
        {
            Ok(value.clone())
        }
        (TypeRef::IntOrString, _) => no_text("int32"),
        (_, Value::String(text)) => scalar::time(text, *kind == TypeRef::MicroTime).map(|_| value.clone()),
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
