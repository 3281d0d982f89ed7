//! Handles the annotation `kubectl.kubernetes.io/last-applied-configuration`: lets server-side apply by kubectl take over the
//! fields that its client-side apply recorded.

use serde_json::Value;

use super::path::FieldSet;
use super::typed::{Duplicates, Typing};
use crate::object;

/// The manager to whom fields in the annotation belong.
pub(super) const MANAGER: &str = "kubectl";
const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Returns the fields that the annotation of `live` sets and `live` still has: taking them over is no conflict.
#[must_use]
pub(super) fn owned(typing: Typing<'_>, live: &Value, api_version: &str) -> FieldSet {
    let Some(text) = annotation(live) else { return FieldSet::default() };
    let Ok(config) = serde_json::from_str::<Value>(text) else { return FieldSet::default() };
    let same_version = config.get("apiVersion").and_then(Value::as_str) == Some(api_version);
    if !same_version || !typing.problems(&config, Duplicates::Refused).is_empty() {
        return FieldSet::default();
    }
    let differences = typing.compare(&config, live);
    typing
        .owned(&config)
        .difference(&differences.modified)
        .difference(&differences.added)
        .difference(&differences.removed)
}

/// Updates the annotation to the applied configuration, if there is one.
pub(super) fn renew(object: &mut Value, config: &Value) {
    if annotation(object).is_none() {
        return;
    }
    let mut config = config.clone();
    if let Some(annotations) =
        object::known_meta_mut(&mut config, "annotations").and_then(Value::as_object_mut)
    {
        annotations.shift_remove(ANNOTATION);
    }
    object::sort_members(&mut config, |_| {});
    let text = format!("{config}\n");
    let annotations = object::member_mut(object::meta_mut(object), "annotations");
    annotations.insert(ANNOTATION.to_owned(), text.into());
}

fn annotation(object: &Value) -> Option<&str> {
    let annotations = object::meta(object, "annotations")?;
    annotations.get(ANNOTATION)?.as_str().filter(|text| !text.is_empty())
}
