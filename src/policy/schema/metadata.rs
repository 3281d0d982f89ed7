//! ObjectMeta and TypeMeta of the root and of embedded resources: read as the API server's types would be, unknown
//! fields dropped and named, values validated.

use serde_json::{Map, Value};

use super::Schema;
use crate::error::FieldError;
use crate::names;
use crate::path::Path;

/// Bytes that the keys and values of all annotations may have together.
const MAX_ANNOTATIONS: usize = 262_144;

/// What a field of ObjectMeta holds.
#[derive(Clone, Copy)]
enum Shape {
    Text,
    Integer,
    Bool,
    Time,
    TextMap,
    TextList,
    OwnerReferences,
    ManagedFields,
    /// Any object: `fieldsV1`.
    Raw,
}

const OBJECT_META: &[(&str, Shape)] = &[
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
    ("ownerReferences", Shape::OwnerReferences),
    ("finalizers", Shape::TextList),
    ("managedFields", Shape::ManagedFields),
];

const OWNER_REFERENCE: &[(&str, Shape)] = &[
    ("apiVersion", Shape::Text),
    ("kind", Shape::Text),
    ("name", Shape::Text),
    ("uid", Shape::Text),
    ("controller", Shape::Bool),
    ("blockOwnerDeletion", Shape::Bool),
];

const MANAGED_FIELDS: &[(&str, Shape)] = &[
    ("manager", Shape::Text),
    ("operation", Shape::Text),
    ("apiVersion", Shape::Text),
    ("time", Shape::Time),
    ("fieldsType", Shape::Text),
    ("fieldsV1", Shape::Raw),
    ("subresource", Shape::Text),
];

/// What to do with a field of the right name and the wrong type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    Refuse,
    Drop,
}

/// Reads the metadata of every embedded resource (and of the document itself where `root`): unknown fields are
/// removed and their paths returned sorted.
///
/// # Errors
/// A field of the wrong type, where these are refused.
pub fn coerce(
    document: &mut Value,
    schema: &Schema,
    root: bool,
    malformed: Malformed,
) -> Result<Vec<String>, Box<FieldError>> {
    let mut unknown = Vec::new();
    coerce_node(document, schema, &Path::Nil, root, &mut Coercer { malformed, unknown: &mut unknown })?;
    unknown.sort_unstable();
    Ok(unknown)
}

struct Coercer<'u> {
    malformed: Malformed,
    unknown: &'u mut Vec<String>,
}

fn coerce_node(
    value: &mut Value,
    schema: &Schema,
    path: &Path<'_>,
    resource: bool,
    coercer: &mut Coercer<'_>,
) -> Result<(), Box<FieldError>> {
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
        if let Err(detail) = check_shape(metadata, OBJECT_META, "ObjectMeta") {
            if self.malformed == Malformed::Refuse {
                return Err(Box::new(FieldError::invalid(at, &*metadata, detail)));
            }
            match metadata {
                Value::Object(fields) => fields.retain(|key, value| {
                    let shape = OBJECT_META.iter().find(|(name, _)| name == key);
                    shape.is_none_or(|(name, shape)| check_field(value, *shape, name).is_ok())
                }),
                // What is no object at all stays for the schema to refuse.
                _ => return Ok(()),
            }
        }
        self.drop_unknown(metadata, OBJECT_META, &at);
        Ok(())
    }

    fn drop_unknown(&mut self, value: &mut Value, table: &[(&str, Shape)], path: &Path<'_>) {
        let Value::Object(fields) = value else { return };
        fields.retain(|key, value| {
            let known = table.iter().any(|(name, _)| name == key);
            if !known {
                self.unknown.push(path.child(key).to_string());
            }
            known && !is_zero(value)
        });
        for (key, value) in fields.iter_mut() {
            let inner = match table.iter().find(|(name, _)| name == key) {
                Some((_, Shape::OwnerReferences)) => OWNER_REFERENCE,
                Some((_, Shape::ManagedFields)) => MANAGED_FIELDS,
                _ => continue,
            };
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

/// Whether the metadata decodes into ObjectMeta; the message is Go's decoder's.
fn check_shape(value: &Value, table: &[(&str, Shape)], go_type: &str) -> Result<(), String> {
    match value {
        Value::Object(fields) => fields.iter().try_for_each(|(key, value)| {
            table
                .iter()
                .find(|(name, _)| name == key)
                .map_or(Ok(()), |(_, shape)| check_field(value, *shape, key))
                .map_err(|message| message.replace("%OBJECT%", go_type))
        }),
        Value::Null => Ok(()),
        other => Err(format!("json: cannot unmarshal {} into Go value of type v1.{go_type}", kind_of(other))),
    }
}

fn check_field(value: &Value, shape: Shape, field: &str) -> Result<(), String> {
    let wrong = |value: &Value, field: &str, go_type: &str| {
        Err(format!(
            "json: cannot unmarshal {} into Go struct field %OBJECT%.{field} of type {go_type}",
            kind_of(value)
        ))
    };
    match (shape, value) {
        (_, Value::Null)
        | (Shape::Text | Shape::Time, Value::String(_))
        | (Shape::Bool, Value::Bool(_))
        | (Shape::Raw, _) => Ok(()),
        (Shape::Integer, Value::Number(number)) if number.is_i64() => Ok(()),
        (Shape::Text, value) => wrong(value, field, if field == "uid" { "types.UID" } else { "string" }),
        (Shape::Time, value) => wrong(value, field, "v1.Time"),
        (Shape::Bool, value) => wrong(value, field, "bool"),
        (Shape::Integer, value) => wrong(value, field, "int64"),
        (Shape::TextMap, Value::Object(map)) => match map.values().find(|v| !v.is_string() && !v.is_null()) {
            Some(value) => wrong(value, field, "string"),
            None => Ok(()),
        },
        (Shape::TextMap, value) => wrong(value, field, "map[string]string"),
        (Shape::TextList, Value::Array(items)) => match items.iter().find(|v| !v.is_string() && !v.is_null())
        {
            Some(value) => wrong(value, field, "string"),
            None => Ok(()),
        },
        (Shape::TextList, value) => wrong(value, field, "[]string"),
        (Shape::OwnerReferences, Value::Array(items)) => {
            items.iter().try_for_each(|item| check_shape(item, OWNER_REFERENCE, "OwnerReference"))
        }
        (Shape::OwnerReferences, value) => wrong(value, field, "[]v1.OwnerReference"),
        (Shape::ManagedFields, Value::Array(items)) => {
            items.iter().try_for_each(|item| check_shape(item, MANAGED_FIELDS, "ManagedFieldsEntry"))
        }
        (Shape::ManagedFields, value) => wrong(value, field, "[]v1.ManagedFieldsEntry"),
    }
}

const fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Validates apiVersion, kind and metadata of every embedded resource, and of the document itself where `root`.
pub fn validate(value: &Value, schema: &Schema, path: &Path<'_>, root: bool, errors: &mut Vec<FieldError>) {
    match value {
        Value::Object(map) => {
            if root || schema.embedded_resource {
                embedded_resource(map, path, errors);
            }
            for (key, child) in map {
                if let Some(property) = schema.properties.get(key.as_str()) {
                    validate(child, property, &path.child(key), false, errors);
                } else if let Some(entry) = schema.additional_schema() {
                    validate(child, entry, &path.key(key), false, errors);
                }
            }
        }
        Value::Array(items) => {
            if let Some(item_schema) = &schema.items {
                for (i, item) in items.iter().enumerate() {
                    validate(item, item_schema, &path.index(i), false, errors);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn embedded_resource(map: &Map<String, Value>, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for key in ["apiVersion", "kind"] {
        let at = path.child(key);
        match map.get(key) {
            None => errors.push(FieldError::required(at, "")),
            Some(Value::String(text)) if text.is_empty() => {
                errors.push(FieldError::invalid(at, "", "must not be empty"));
            }
            Some(Value::String(text)) if key == "apiVersion" => {
                if text.matches('/').count() > 1 {
                    let detail = format!("unexpected GroupVersion string: {text}");
                    errors.push(FieldError::invalid(at, text.as_str(), detail));
                }
            }
            Some(Value::String(text)) => {
                let problems = names::dns1035_label(&text.to_lowercase());
                if !problems.is_empty() {
                    let detail =
                        format!("may have mixed case, but should otherwise match: {}", problems.join(","));
                    errors.push(FieldError::invalid(at, text.as_str(), detail));
                }
            }
            Some(value) => errors.push(FieldError::invalid(at, value, "must be a string")),
        }
    }
    let at = path.child("metadata");
    match map.get("metadata") {
        None => {}
        Some(value) => match check_shape(value, OBJECT_META, "ObjectMeta") {
            Err(detail) => errors.push(FieldError::invalid(at, value, detail)),
            Ok(()) => {
                let empty = Map::new();
                let fields = value.as_object().unwrap_or(&empty);
                let namespaced = !text(fields, "namespace").is_empty();
                names_of_embedded(fields, &at, errors);
                validate_object_meta(fields, namespaced, &at, errors);
            }
        },
    }
}

fn names_of_embedded(fields: &Map<String, Value>, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for (key, prefix) in [("generateName", true), ("name", false)] {
        let name = text(fields, key);
        for problem in names::path_segment(name, prefix) {
            errors.push(FieldError::invalid(path.child(key), name, problem));
        }
    }
}

/// The checks of ObjectMeta that hold for every kind: all but those of the name, which each kind has of its own.
pub fn validate_object_meta(
    fields: &Map<String, Value>,
    namespaced: bool,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let namespace = text(fields, "namespace");
    let at = path.child("namespace");
    match (namespaced, namespace) {
        (true, "") => errors.push(FieldError::required(at, "")),
        (false, "") => {}
        (false, _) => errors.push(FieldError::forbidden(at, "not allowed on this type")),
        (true, namespace) => {
            let problems = names::dns1123_label(namespace);
            errors.extend(problems.into_iter().map(|problem| FieldError::invalid(at, namespace, problem)));
        }
    }
    if let Some(generation) =
        fields.get("generation").and_then(Value::as_i64).filter(|generation| *generation < 0)
    {
        let detail = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(path.child("generation"), generation, detail));
    }
    for (key, value) in entries(fields, "labels") {
        let at = path.child("labels");
        errors.extend(names::label_key(key).into_iter().map(|problem| FieldError::invalid(at, key, problem)));
        errors.extend(
            names::label_value(value).into_iter().map(|problem| FieldError::invalid(at, value, problem)),
        );
    }
    let at = path.child("annotations");
    let mut size = 0_usize;
    for (key, value) in entries(fields, "annotations") {
        let problems = names::label_key(&key.to_lowercase());
        errors.extend(problems.into_iter().map(|problem| FieldError::invalid(at, key, problem)));
        size = size.saturating_add(key.len()).saturating_add(value.len());
    }
    if size > MAX_ANNOTATIONS {
        errors.push(FieldError::too_long(at, 262_144));
    }
    owner_references(fields, &path.child("ownerReferences"), errors);
    finalizers(fields, &path.child("finalizers"), errors);
}

fn owner_references(fields: &Map<String, Value>, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let Some(references) = fields.get("ownerReferences").and_then(Value::as_array) else { return };
    let mut controller: Option<String> = None;
    for (i, reference) in references.iter().enumerate() {
        let empty = Map::new();
        let reference = reference.as_object().unwrap_or(&empty);
        let at = path.index(i);
        for key in ["apiVersion", "kind", "name", "uid"] {
            if text(reference, key).is_empty() {
                errors.push(FieldError::required(at.child(key), "must not be empty"));
            }
        }
        let api_version = text(reference, "apiVersion");
        if !api_version.is_empty() && (api_version.matches('/').count() > 1 || api_version.ends_with('/')) {
            let detail = "must be <group>/<version> or <version>";
            errors.push(FieldError::invalid(at.child("apiVersion"), api_version, detail));
        }
        if reference.get("controller") == Some(&Value::Bool(true)) {
            let name = format!("{}/{}", text(reference, "kind"), text(reference, "name"));
            match &controller {
                None => controller = Some(name),
                Some(first) => {
                    let detail = format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for {first} \
                         and {name}"
                    );
                    errors.push(FieldError::invalid(path, Value::Array(references.clone()), detail));
                }
            }
        }
    }
}

fn finalizers(fields: &Map<String, Value>, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let Some(finalizers) = fields.get("finalizers").and_then(Value::as_array) else { return };
    let texts = || finalizers.iter().filter_map(Value::as_str);
    for name in texts() {
        let problems = names::label_key(name);
        errors.extend(problems.into_iter().map(|problem| FieldError::invalid(path, name, problem)));
    }
    if texts().any(|name| name == "orphan") && texts().any(|name| name == "foregroundDeletion") {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        errors.push(FieldError::invalid(path, Value::Array(finalizers.clone()), detail));
    }
}

fn text<'m>(fields: &'m Map<String, Value>, key: &str) -> &'m str {
    fields.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn entries<'m>(fields: &'m Map<String, Value>, key: &str) -> impl Iterator<Item = (&'m str, &'m str)> {
    let map = fields.get(key).and_then(Value::as_object);
    map.into_iter().flatten().map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
}
