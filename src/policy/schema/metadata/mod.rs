//! Reads ObjectMeta and TypeMeta of the root and of embedded resources as the API server's types do: unknown fields
//! are dropped and reported, values validated.

pub(crate) mod configuration;
mod validate;

use admit_apimachinery::field_error::FieldError;
use admit_apimachinery::go::layout::TimestampError;
use admit_apimachinery::go::{self, Timestamp};
use serde_json::{Map, Value};

pub(crate) use validate::{validate, validate_object_meta};

use super::Schema;
use crate::deadline::Pace;
use crate::read::path::Path;
use admit_apimachinery::bounded::Paths;

/// What a field of ObjectMeta holds.
#[derive(Clone, Copy)]
enum Shape {
    Text,
    Integer,
    Bool,
    Time,
    TextMap,
    TextList,
    /// A list of structures.
    List(&'static Structure),
    /// Any object: `fieldsV1`.
    Raw,
}

/// A structure of Go's: its name and its fields.
struct Structure {
    name: &'static str,
    fields: &'static [(&'static str, Shape)],
}

impl Structure {
    fn shape(&self, field: &str) -> Option<Shape> {
        self.fields.iter().find(|(name, _)| *name == field).map(|(_, shape)| *shape)
    }
}

static OBJECT_META: Structure = Structure {
    name: "ObjectMeta",
    fields: &[
        ("name", Shape::Text),
        ("generateName", Shape::Text),
        ("namespace", Shape::Text),
        ("selfLink", Shape::Text),
        ("uid", Shape::Text),
        ("resourceVersion", Shape::Text),
        ("generation", Shape::Integer),
        ("creationTimestamp", Shape::Time),
        ("deletionTimestamp", Shape::Time),
        ("deletionGracePeriodSeconds", Shape::Integer),
        ("labels", Shape::TextMap),
        ("annotations", Shape::TextMap),
        ("ownerReferences", Shape::List(&OWNER_REFERENCE)),
        ("finalizers", Shape::TextList),
        ("managedFields", Shape::List(&MANAGED_FIELDS)),
    ],
};

static OWNER_REFERENCE: Structure = Structure {
    name: "OwnerReference",
    fields: &[
        ("apiVersion", Shape::Text),
        ("kind", Shape::Text),
        ("name", Shape::Text),
        ("uid", Shape::Text),
        ("controller", Shape::Bool),
        ("blockOwnerDeletion", Shape::Bool),
    ],
};

static MANAGED_FIELDS: Structure = Structure {
    name: "ManagedFieldsEntry",
    fields: &[
        ("manager", Shape::Text),
        ("operation", Shape::Text),
        ("apiVersion", Shape::Text),
        ("time", Shape::Time),
        ("fieldsType", Shape::Text),
        ("fieldsV1", Shape::Raw),
        ("subresource", Shape::Text),
    ],
};

/// What to do with a field of the right name and the wrong type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    Refuse,
    Drop,
}

/// Reads the metadata of every embedded resource (and of the document itself if `root`): unknown fields are removed and their paths
/// returned sorted; of very many, only the first. Stops when time is up.
///
/// # Errors
/// A field of the wrong type, if these are rejected.
pub(crate) fn coerce(
    document: &mut Value,
    schema: &Schema,
    root: bool,
    malformed: Malformed,
    pace: &Pace<'_>,
) -> Result<Vec<String>, Box<FieldError>> {
    let mut coercer = Coercer { malformed, unknown: Paths::new(), pace };
    coerce_node(document, schema, &Path::Nil, root, &mut coercer)?;
    Ok(coercer.sorted())
}

/// The fields of an object's metadata at `path` that no ObjectMeta has, sorted.
pub(crate) fn unknown_fields(metadata: &Value, path: &Path<'_>) -> Vec<String> {
    let mut coercer = Coercer { malformed: Malformed::Refuse, unknown: Paths::new(), pace: &Pace::default() };
    coercer.drop_unknown(&mut metadata.clone(), &OBJECT_META, path);
    coercer.sorted()
}

struct Coercer<'u> {
    malformed: Malformed,
    unknown: Paths,
    pace: &'u Pace<'u>,
}

fn coerce_node(
    value: &mut Value,
    schema: &Schema,
    path: &Path<'_>,
    resource: bool,
    coercer: &mut Coercer<'_>,
) -> Result<(), Box<FieldError>> {
    if coercer.pace.is_over() {
        return Ok(());
    }
    match value {
        Value::Object(map) => {
            if resource {
                coercer.resource(map, path)?;
            }
            for (key, child) in map.iter_mut() {
                if let Some(property) = schema.properties.get(key.as_str()) {
                    coerce_node(child, property, &path.child(key), property.embedded_resource, coercer)?;
                } else if let Some(entry) = schema.additional_schema() {
                    coerce_node(child, entry, &path.key(key), entry.embedded_resource, coercer)?;
                }
            }
        }
        Value::Array(items) => {
            if let Some(item_schema) = &schema.items {
                for (i, item) in items.iter_mut().enumerate() {
                    coerce_node(item, item_schema, &path.index(i), item_schema.embedded_resource, coercer)?;
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    Ok(())
}

impl Coercer<'_> {
    fn sorted(self) -> Vec<String> {
        let mut unknown = self.unknown.into_told();
        unknown.sort_unstable();
        unknown
    }

    fn resource(&mut self, map: &mut Map<String, Value>, path: &Path<'_>) -> Result<(), Box<FieldError>> {
        for key in ["apiVersion", "kind"] {
            match map.get(key) {
                None | Some(Value::String(_)) => {}
                Some(_) if self.malformed == Malformed::Drop => {
                    map.shift_remove(key);
                }
                Some(value) => {
                    return Err(Box::new(FieldError::invalid(path.child(key), value, "must be a string")));
                }
            }
        }
        let Some(metadata) = map.get_mut("metadata") else { return Ok(()) };
        let at = path.child("metadata");
        if let Err(detail) = check_shape(metadata, &OBJECT_META) {
            if self.malformed == Malformed::Refuse {
                return Err(Box::new(FieldError::invalid(at, &*metadata, detail.to_string())));
            }
            match metadata {
                Value::Object(fields) => fields.retain(|key, value| {
                    let shape = OBJECT_META.shape(key);
                    shape.is_none_or(|shape| check_field(value, shape, key, &OBJECT_META).is_ok())
                }),
                // The schema rejects a value that is not an object.
                _ => return Ok(()),
            }
        }
        self.drop_unknown(metadata, &OBJECT_META, &at);
        Ok(())
    }

    fn drop_unknown(&mut self, value: &mut Value, structure: &Structure, path: &Path<'_>) {
        let Value::Object(fields) = value else { return };
        fields.retain(|key, value| {
            let known = structure.shape(key).is_some();
            if !known {
                self.unknown.note(|| path.child(key).to_string());
            }
            known && !is_zero(value)
        });
        for (key, value) in fields.iter_mut() {
            let Some(Shape::List(inner)) = structure.shape(key) else { continue };
            let at = path.child(key);
            for (i, item) in value.as_array_mut().into_iter().flatten().enumerate() {
                self.drop_unknown(item, inner, &at.index(i));
            }
        }
    }
}

/// Whether Go writes nothing for the value: null, or empty in a field that is left out when empty.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// A value of another type than its field, in the words of Go's decoder.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum Misfit {
    /// A whole structure has the wrong type.
    #[error("json: cannot unmarshal {found} into Go value of type v1.{structure}")]
    Structure { found: &'static str, structure: &'static str },
    /// A field of a structure has the wrong type.
    #[error("json: cannot unmarshal {found} into Go struct field {structure}.{field} of type {go_type}")]
    Field { found: &'static str, structure: &'static str, field: String, go_type: String },
    /// A string is not a valid time.
    #[error(transparent)]
    Time(TimestampError),
}

/// Whether a value decodes into a structure.
fn check_shape(value: &Value, structure: &Structure) -> Result<(), Misfit> {
    match value {
        Value::Object(fields) => fields.iter().try_for_each(|(key, value)| match structure.shape(key) {
            Some(shape) => check_field(value, shape, key, structure),
            None => Ok(()),
        }),
        Value::Null => Ok(()),
        other => Err(Misfit::Structure { found: go::json::kind(other), structure: structure.name }),
    }
}

fn check_field(value: &Value, shape: Shape, field: &str, structure: &Structure) -> Result<(), Misfit> {
    let wrong = |value: &Value, go_type: &str| {
        Err(Misfit::Field {
            found: go::json::kind(value),
            structure: structure.name,
            field: field.to_owned(),
            go_type: go_type.to_owned(),
        })
    };
    let is_no_text = |value: &&Value| !value.is_string() && !value.is_null();
    match (shape, value) {
        (_, Value::Null)
        | (Shape::Text, Value::String(_))
        | (Shape::Bool, Value::Bool(_))
        | (Shape::Raw, _) => Ok(()),
        (Shape::Time, Value::String(text)) => text.parse().map(|_: Timestamp| ()).map_err(Misfit::Time),
        (Shape::Integer, Value::Number(number)) if number.is_i64() => Ok(()),
        (Shape::TextMap, Value::Object(map)) => {
            map.values().find(is_no_text).map_or(Ok(()), |v| wrong(v, "string"))
        }
        (Shape::TextList, Value::Array(items)) => {
            items.iter().find(is_no_text).map_or(Ok(()), |v| wrong(v, "string"))
        }
        (Shape::List(inner), Value::Array(items)) => {
            items.iter().try_for_each(|item| check_shape(item, inner))
        }
        (Shape::Text, value) => wrong(value, if field == "uid" { "types.UID" } else { "string" }),
        (Shape::Time, value) => wrong(value, "v1.Time"),
        (Shape::Bool, value) => wrong(value, "bool"),
        (Shape::Integer, value) => wrong(value, "int64"),
        (Shape::TextMap, value) => wrong(value, "map[string]string"),
        (Shape::TextList, value) => wrong(value, "[]string"),
        (Shape::List(inner), value) => wrong(value, &format!("[]v1.{}", inner.name)),
    }
}
