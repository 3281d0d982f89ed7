//! Builds the objects to start from: a minimal one for the schema, and given ones, all with the same name.

use admit_policy::init;
use serde_json::{Map, Value, json};

use super::judge::{Judge, NAMESPACE};

/// Returns a minimal object that the schema accepts.
pub(super) fn sample(judge: &Judge<'_>) -> Value {
    let mut object = json!({"apiVersion": judge.kind.api_version(), "kind": judge.kind.kind});
    if let Some((_, version)) = judge.definition() {
        let schema = version.schema();
        let required = Some(init::sample(schema)).filter(Value::is_object);
        let parts = required.as_ref().and_then(Value::as_object).into_iter().flatten();
        let spec = schema.properties.get("spec").map(|spec| ("spec", init::sample(spec)));
        if let Some(fields) = object.as_object_mut() {
            parts.for_each(|(name, value)| drop(fields.insert(name.clone(), value.clone())));
            if let Some((name, value)) = spec {
                fields.entry(name).or_insert(value);
            }
        }
    }
    judge.stored(&with_identity(&object, judge))
}

/// Gives an object the common name, and removes the fields that a server wrote.
pub(super) fn with_identity(object: &Value, judge: &Judge<'_>) -> Value {
    let mut object = object.clone();
    let Some(fields) = object.as_object_mut() else { return object };
    fields.insert("apiVersion".to_owned(), json!(judge.kind.api_version()));
    let kept = ["labels", "annotations", "finalizers", "ownerReferences"];
    let old = fields.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
    let name = old.get("name").cloned().unwrap_or_else(|| json!("sample"));
    let mut metadata: Map<String, Value> = Map::new();
    metadata.insert("name".to_owned(), name);
    if judge.is_namespaced() {
        metadata.insert("namespace".to_owned(), json!(NAMESPACE));
    }
    metadata.extend(old.into_iter().filter(|(key, _)| kept.contains(&key.as_str())));
    fields.insert("metadata".to_owned(), Value::Object(metadata));
    object
}

/// Collects strings of objects as candidate user names, whole and split at separators.
pub(super) fn texts_of(value: &Value, separators: &[&str], texts: &mut Vec<String>) {
    match value {
        Value::String(text) => {
            texts.push(text.clone());
            let parts = separators.iter().filter(|separator| !separator.is_empty());
            texts.extend(parts.flat_map(|separator| text.split(separator)).map(ToOwned::to_owned));
        }
        Value::Array(items) => items.iter().for_each(|item| texts_of(item, separators, texts)),
        Value::Object(fields) => fields.values().for_each(|field| texts_of(field, separators, texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
