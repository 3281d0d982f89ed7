//! Restores the metadata of a converted object from the original, except labels and annotations, which a webhook may
//! change.

use admit_apimachinery::go::json::type_name;
use serde_json::{Map, Value};

use crate::validation::metadata::{annotation_problems, label_problems};

/// Says what is wrong with the metadata of a converted object, in kube-apiserver's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum MetadataError {
    #[error("missing metadata in converted object")]
    Missing,
    #[error("invalid metadata of type {0} in converted object")]
    OfConverted(&'static str),
    #[error("invalid metadata of type {0} in input object")]
    OfOriginal(&'static str),
    /// The labels or annotations are not a map.
    #[error("invalid metadata.{field} of type {found} in converted object")]
    NoMap { field: &'static str, found: &'static str },
    /// A label or annotation is not a string.
    #[error("metadata.{field}[{key}] must be a string, but is {found} in converted object")]
    NoText { field: &'static str, key: String, found: &'static str },
    /// Invalid labels or annotations; at least one error.
    #[error("{}", listed(.0))]
    Invalid(Vec<String>),
}

fn listed(problems: &[String]) -> String {
    match problems {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}

/// # Errors
/// If the metadata of the converted object is invalid.
pub(super) fn restored(original: &Value, mut converted: Value) -> Result<Value, MetadataError> {
    let mut answered = match converted.get_mut("metadata").map(Value::take) {
        None => return Err(MetadataError::Missing),
        Some(Value::Object(metadata)) => metadata,
        Some(other) => return Err(MetadataError::OfConverted(type_name(&other))),
    };
    let mut metadata = match original.get("metadata") {
        None => Map::new(),
        Some(Value::Object(metadata)) => metadata.clone(),
        Some(other) => return Err(MetadataError::OfOriginal(type_name(other))),
    };
    for field in ["labels", "annotations"] {
        match answered.remove(field) {
            None | Some(Value::Null) => {
                metadata.shift_remove(field);
            }
            Some(Value::Object(pairs)) => {
                checked(field, metadata.get(field), &pairs)?;
                metadata.insert(field.to_owned(), Value::Object(pairs));
            }
            Some(other) => return Err(MetadataError::NoMap { field, found: type_name(&other) }),
        }
    }
    if let Some(place) = converted.get_mut("metadata") {
        *place = Value::Object(metadata);
    }
    Ok(converted)
}

fn checked(
    field: &'static str,
    before: Option<&Value>,
    pairs: &Map<String, Value>,
) -> Result<(), MetadataError> {
    for (key, value) in pairs {
        if !value.is_string() {
            return Err(MetadataError::NoText { field, key: key.clone(), found: type_name(value) });
        }
    }
    // Unchanged pairs are not validated again.
    if before.and_then(Value::as_object) == Some(pairs) {
        return Ok(());
    }
    let changed = serde_json::json!({"metadata": {field: pairs}});
    let problems = if field == "labels" { label_problems(&changed) } else { annotation_problems(&changed) };
    if problems.is_empty() { Ok(()) } else { Err(MetadataError::Invalid(problems)) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn meta(metadata: &Value) -> Value {
        json!({"metadata": metadata, "spec": {}})
    }

    #[test]
    fn labels_and_annotations_are_the_webhooks_and_the_rest_is_not() {
        let original = meta(
            &json!({"name": "a", "finalizers": ["x/y"], "labels": {"a": "A"}, "annotations": {"a": "1"}}),
        );
        let cases = [
            (
                json!({"name": "b", "generation": 42, "labels": {"a": "AA", "b": "B"}, "annotations": null}),
                json!({"name": "a", "finalizers": ["x/y"], "labels": {"a": "AA", "b": "B"}}),
            ),
            (json!({}), json!({"name": "a", "finalizers": ["x/y"]})),
        ];
        for (answered, expected) in cases {
            assert_eq!(restored(&original, meta(&answered)), Ok(meta(&expected)));
        }
        assert_eq!(restored(&json!({"spec": {}}), meta(&json!({"name": "a"}))), Ok(meta(&json!({}))));
    }

    #[test]
    fn metadata_that_is_none_is_refused() {
        let original = meta(&json!({"labels": {"not/a/key": "old"}}));
        let cases = [
            (json!({"spec": {}}), "missing metadata in converted object"),
            (meta(&json!(["foo"])), "invalid metadata of type []interface {} in converted object"),
            (meta(&json!({"labels": 5})), "invalid metadata.labels of type int64 in converted object"),
            (
                meta(&json!({"annotations": {"a": null}})),
                "metadata.annotations[a] must be a string, but is <nil> in converted object",
            ),
        ];
        for (converted, why) in cases {
            assert_eq!(restored(&original, converted).unwrap_err().to_string(), why);
        }
        assert!(restored(&original, meta(&json!({"labels": {"not/a/key": "old"}}))).is_ok(), "as it was");
        for odd in [
            json!({"labels": {"some/other/key": "x"}}),
            json!({"labels": {"a": "\u{fc}"}}),
            json!({"annotations": {"a": "x".repeat((256 << 10) + 1)}}),
        ] {
            assert!(restored(&original, meta(&odd)).is_err(), "{odd}");
        }
    }
}
