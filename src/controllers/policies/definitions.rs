//! Finds the served versions of custom resources in the stored CRDs.

use std::sync::Arc;

use admit_apimachinery::pointer;
use admit_apimachinery::pointer::text;
use admit_policy::{GroupVersionKind, GroupVersionResource, HostError};
use serde_json::Value;

/// Returns the served versions of `resource`, with the kind of `subresource` in each.
pub(super) fn equivalents(
    definitions: &[Arc<Value>],
    resource: &GroupVersionResource,
    subresource: &str,
) -> Vec<(GroupVersionResource, GroupVersionKind)> {
    let defines = |definition: &&Arc<Value>| {
        text(definition, "/spec/group") == resource.group
            && text(definition, "/spec/names/plural") == resource.resource
    };
    let Some(definition) = definitions.iter().find(defines) else { return Vec::new() };
    let group = resource.group.as_str();
    let equivalent = |version: &str| {
        let kind = match subresource {
            "scale" => GroupVersionKind::new("autoscaling", "v1", "Scale"),
            _ => GroupVersionKind::new(group, version, text(definition, "/spec/names/kind")),
        };
        (GroupVersionResource::new(group, version, resource.resource.as_str()), kind)
    };
    served(definition).map(equivalent).collect()
}

/// Converts `object` to the version of `kind`.
///
/// # Errors
/// When no CRD serves that version, or a webhook would have to convert.
pub(super) fn convert(
    definitions: &[Arc<Value>],
    object: &Value,
    kind: &GroupVersionKind,
) -> Result<Value, HostError> {
    let to = || format!("{}, Kind={}", kind.api_version(), kind.kind);
    let defines = |definition: &&Arc<Value>| {
        text(definition, "/spec/group") == kind.group
            && text(definition, "/spec/names/kind") == kind.kind
            && served(definition).any(|version| version == kind.version)
    };
    let Some(definition) = definitions.iter().find(defines) else {
        return Err(HostError(format!("no conversion to {}", to())));
    };
    if text(definition, "/spec/conversion/strategy") == "Webhook" {
        return Err(HostError(format!("not supported: conversion to {} by a webhook", to())));
    }
    let mut converted = object.clone();
    if let Value::Object(fields) = &mut converted {
        fields.insert("apiVersion".to_owned(), kind.api_version().into());
    }
    Ok(converted)
}

fn served(definition: &Value) -> impl Iterator<Item = &str> {
    let versions = pointer::items(definition, "/spec/versions").iter();
    let served = versions.filter(|version| version.get("served") == Some(&Value::Bool(true)));
    served.map(|version| text(version, "/name"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn definition(strategy: &str) -> [Arc<Value>; 1] {
        [Arc::new(json!({"spec": {
            "group": "example.com", "names": {"plural": "widgets", "kind": "Widget"},
            "conversion": {"strategy": strategy},
            "versions": [
                {"name": "v1", "served": true}, {"name": "v1beta1", "served": true}, {"name": "v0", "served": false},
            ],
        }}))]
    }

    #[test]
    fn versions_that_are_served_are_equivalent() {
        let widgets = GroupVersionResource::new("example.com", "v1", "widgets");
        let found = equivalents(&definition("None"), &widgets, "");
        let versions: Vec<&str> = found.iter().map(|(resource, _)| resource.version.as_str()).collect();
        assert_eq!(versions, ["v1", "v1beta1"]);
        assert!(
            equivalents(&definition("None"), &GroupVersionResource::new("", "v1", "widgets"), "").is_empty()
        );
    }

    #[test]
    fn only_what_needs_no_webhook_is_converted() {
        let kind = |version: &str| GroupVersionKind::new("example.com", version, "Widget");
        let object = json!({"apiVersion": "example.com/v1", "a": 1});
        let converted = convert(&definition("None"), &object, &kind("v1beta1")).unwrap();
        assert_eq!(converted, json!({"apiVersion": "example.com/v1beta1", "a": 1}));
        assert!(convert(&definition("None"), &object, &kind("v0")).is_err());
        let error = convert(&definition("Webhook"), &object, &kind("v1beta1")).unwrap_err().to_string();
        assert!(error.starts_with("not supported: "), "{error}");
    }
}
