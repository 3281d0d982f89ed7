//! Validates the values of TypeMeta and ObjectMeta, with the messages of apimachinery's `pkg/api/validation`.

use admit_apimachinery::field_error::{BadValue, FieldError};
use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::{go, labels, names};
use serde_json::{Map, Value};

use super::{OBJECT_META, check_shape};
use crate::deadline::Pace;
use crate::read::path::Path;
use crate::schema::Schema;

/// Bytes that the keys and values of all annotations may have together.
const MAX_ANNOTATIONS: usize = 262_144;

/// Validates apiVersion, kind and metadata of every embedded resource, and of the document itself where `root`. Ends
/// when its time is over.
pub(crate) fn validate(
    value: &Value,
    schema: &Schema,
    path: &Path<'_>,
    root: bool,
    errors: &mut FieldErrors,
    pace: &Pace<'_>,
) {
    if pace.is_over() {
        return;
    }
    match value {
        Value::Object(map) => {
            if root || schema.embedded_resource {
                embedded_resource(map, path, errors);
            }
            for (key, child) in map {
                if let Some(property) = schema.properties.get(key.as_str()) {
                    validate(child, property, &path.child(key), false, errors, pace);
                } else if let Some(entry) = schema.additional_schema() {
                    validate(child, entry, &path.key(key), false, errors, pace);
                }
            }
        }
        Value::Array(items) => {
            if let Some(item_schema) = &schema.items {
                for (i, item) in items.iter().enumerate() {
                    validate(item, item_schema, &path.index(i), false, errors, pace);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn embedded_resource(map: &Map<String, Value>, path: &Path<'_>, errors: &mut FieldErrors) {
    for key in ["apiVersion", "kind"] {
        let at = path.child(key);
        match map.get(key) {
            None => errors.add(|| FieldError::required(at, "")),
            Some(Value::String(text)) if text.is_empty() => {
                errors.push(FieldError::invalid(at, "", "must not be empty"));
            }
            Some(Value::String(text)) if key == "apiVersion" => {
                if text.matches('/').count() > 1 {
                    let detail = format!("unexpected GroupVersion string: {text}");
                    errors.add(|| FieldError::invalid(at, text.as_str(), detail));
                }
            }
            Some(Value::String(text)) => {
                let problems = names::dns1035_label(&text.to_lowercase());
                if !problems.is_empty() {
                    let detail =
                        format!("may have mixed case, but should otherwise match: {}", problems.join(","));
                    errors.add(|| FieldError::invalid(at, text.as_str(), detail));
                }
            }
            Some(value) => errors.add(|| FieldError::invalid(at, value, "must be a string")),
        }
    }
    let at = path.child("metadata");
    match map.get("metadata") {
        None => {}
        Some(value) => match check_shape(value, &OBJECT_META) {
            Err(error) => errors.add(|| FieldError::invalid(at, value, error.to_string())),
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

fn names_of_embedded(fields: &Map<String, Value>, path: &Path<'_>, errors: &mut FieldErrors) {
    for (key, prefix) in [("generateName", true), ("name", false)] {
        let name = text(fields, key);
        for problem in names::path_segment(name, prefix) {
            errors.add(|| FieldError::invalid(path.child(key), name, problem));
        }
    }
}

/// The checks of ObjectMeta that hold for every kind: all but those of the name, which each kind has of its own.
pub(crate) fn validate_object_meta(
    fields: &Map<String, Value>,
    namespaced: bool,
    path: &Path<'_>,
    errors: &mut FieldErrors,
) {
    let namespace = text(fields, "namespace");
    let at = path.child("namespace");
    match (namespaced, namespace) {
        (true, "") => errors.add(|| FieldError::required(at, "")),
        // A server drops the namespace that an object of a cluster-scoped kind comes with before it looks at the rest.
        (false, _) => {}
        (true, namespace) => {
            let problems = names::dns1123_label(namespace);
            errors.extend(problems.into_iter().map(|problem| FieldError::invalid(at, namespace, problem)));
        }
    }
    if let Some(generation) =
        fields.get("generation").and_then(Value::as_i64).filter(|generation| *generation < 0)
    {
        let detail = "must be greater than or equal to 0";
        errors.add(|| FieldError::invalid(path.child("generation"), generation, detail));
    }
    for (key, value) in entries(fields, "labels") {
        let at = path.child("labels");
        errors.extend(labels::key(key).into_iter().map(|problem| FieldError::invalid(at, key, problem)));
        errors
            .extend(labels::value(value).into_iter().map(|problem| FieldError::invalid(at, value, problem)));
    }
    let at = path.child("annotations");
    let mut size = 0_usize;
    for (key, value) in entries(fields, "annotations") {
        let problems = labels::key(&key.to_lowercase());
        errors.extend(problems.into_iter().map(|problem| FieldError::invalid(at, key, problem)));
        size = size.saturating_add(key.len()).saturating_add(value.len());
    }
    if size > MAX_ANNOTATIONS {
        errors.add(|| FieldError::too_long(at, 262_144));
    }
    owner_references(fields, &path.child("ownerReferences"), errors);
    finalizers(fields, &path.child("finalizers"), errors);
}

fn owner_references(fields: &Map<String, Value>, path: &Path<'_>, errors: &mut FieldErrors) {
    let Some(references) = fields.get("ownerReferences").and_then(Value::as_array) else { return };
    let mut controller: Option<String> = None;
    for reference in references {
        let empty = Map::new();
        let reference = reference.as_object().unwrap_or(&empty);
        owner_reference(reference, path, errors);
        if reference.get("controller") == Some(&Value::Bool(true)) {
            let name = format!("{}/{}", text(reference, "kind"), text(reference, "name"));
            match &controller {
                None => controller = Some(name),
                Some(first) => {
                    let detail = format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for {first} \
                         and {name}"
                    );
                    // The message repeats all references for each of them, so it is built only if there is space.
                    errors.add(|| {
                        let all: Vec<_> =
                            references.iter().filter_map(Value::as_object).map(struct_json).collect();
                        FieldError::invalid(path, BadValue::Verbatim(format!("[{}]", all.join(","))), detail)
                    });
                }
            }
        }
    }
}

fn owner_reference(reference: &Map<String, Value>, path: &Path<'_>, errors: &mut FieldErrors) {
    let api_version = text(reference, "apiVersion");
    let version = match api_version.split_once('/') {
        None => api_version,
        Some((_, version)) if version.contains('/') => "",
        Some((_, version)) => version,
    };
    if version.is_empty() {
        let detail = "version must not be empty";
        errors.add(|| FieldError::invalid(path.child("apiVersion"), api_version, detail));
    }
    for key in ["kind", "name", "uid"] {
        if text(reference, key).is_empty() {
            errors.add(|| FieldError::invalid(path.child(key), "", "must not be empty"));
        }
    }
    if api_version == "v1" && text(reference, "kind") == "Event" {
        let shown = BadValue::Verbatim(struct_json(reference));
        errors.add(|| FieldError::invalid(path, shown, "/v1, Kind=Event is disallowed from being an owner"));
    }
}

/// An owner reference as Go marshals it: fields in the order of their declaration.
fn struct_json(reference: &Map<String, Value>) -> String {
    let mut parts = Vec::new();
    for key in ["apiVersion", "kind", "name", "uid"] {
        let value = reference.get(key).cloned().unwrap_or_else(|| "".into());
        parts.push(format!("\"{key}\":{}", go::json::text(&value)));
    }
    for key in ["controller", "blockOwnerDeletion"] {
        if let Some(value) = reference.get(key).filter(|value| !value.is_null()) {
            parts.push(format!("\"{key}\":{}", go::json::text(value)));
        }
    }
    format!("{{{}}}", parts.join(","))
}

fn finalizers(fields: &Map<String, Value>, path: &Path<'_>, errors: &mut FieldErrors) {
    let Some(finalizers) = fields.get("finalizers").and_then(Value::as_array) else { return };
    let texts = || finalizers.iter().filter_map(Value::as_str);
    for name in texts() {
        let problems = labels::key(name);
        errors.extend(problems.into_iter().map(|problem| FieldError::invalid(path, name, problem)));
    }
    if texts().any(|name| name == "orphan") && texts().any(|name| name == "foregroundDeletion") {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        errors.add(|| FieldError::invalid(path, Value::Array(finalizers.clone()), detail));
    }
}

fn text<'m>(fields: &'m Map<String, Value>, key: &str) -> &'m str {
    fields.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn entries<'m>(fields: &'m Map<String, Value>, key: &str) -> impl Iterator<Item = (&'m str, &'m str)> {
    let map = fields.get(key).and_then(Value::as_object);
    map.into_iter().flatten().map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
}
