//! Builds the schemas of custom kinds: those of their CRDs, with the members that every object has.

use serde_json::{Map, Value, json};

use super::operations::{META, gvk, reference};
use crate::resources::ResourceInfo;

pub(super) const API_VERSION: &str = "APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized schemas to the latest internal value, and may reject unrecognized values. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources";
pub(super) const KIND: &str = "Kind is a string value representing the REST resource this object represents. Servers may infer this from the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";
pub(super) const OBJECT_METADATA: &str = "Standard object's metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

/// Returns the schema of a custom kind as published: that of the CRD, with the members that every object has.
pub(super) fn custom_schema(row: &ResourceInfo) -> Map<String, Value> {
    let mut schema = match row.schema.as_deref() {
        Some(Value::Object(schema)) => schema.clone(),
        _ => {
            let mut open = Map::new();
            open.insert("type".into(), "object".into());
            open.insert("x-kubernetes-preserve-unknown-fields".into(), true.into());
            open
        }
    };
    add_object_members(&mut schema);
    complete_embedded(&mut schema);
    schema
}

/// Returns extensions of a custom resource's schema: its kind, and the fields for selectors.
pub(super) fn extensions(row: &ResourceInfo) -> impl Iterator<Item = (String, Value)> {
    let kind =
        ("x-kubernetes-group-version-kind".to_owned(), json!([gvk(&row.group, &row.version, &row.kind)]));
    std::iter::once(kind).chain(selectable_fields(row))
}

pub(super) fn add_object_members(schema: &mut Map<String, Value>) {
    let properties = schema.entry("properties").or_insert_with(|| json!({}));
    if let Value::Object(properties) = properties {
        properties.insert("apiVersion".into(), json!({"description": API_VERSION, "type": "string"}));
        properties.insert("kind".into(), json!({"description": KIND, "type": "string"}));
        let metadata =
            json!({"description": OBJECT_METADATA, "allOf": [reference(&format!("{META}.ObjectMeta"))]});
        properties.insert("metadata".into(), metadata);
    }
}

/// Adds metadata to embedded objects.
fn complete_embedded(schema: &mut Map<String, Value>) {
    for key in ["items", "additionalProperties"] {
        if let Some(Value::Object(inner)) = schema.get_mut(key) {
            complete_node(inner);
        }
    }
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        for inner in properties.values_mut().filter_map(Value::as_object_mut) {
            complete_node(inner);
        }
    }
}

/// Adds the members that every object has, and requires kind and version of an embedded object.
pub(super) fn add_embedded_members(schema: &mut Map<String, Value>) {
    add_object_members(schema);
    let required = schema.entry("required").or_insert_with(|| json!([]));
    for name in ["kind", "apiVersion"] {
        if let Some(names) = required.as_array_mut().filter(|names| !names.contains(&name.into())) {
            names.push(name.into());
        }
    }
}

/// Adds standard OpenAPI members for the meaning of extensions.
fn complete_node(schema: &mut Map<String, Value>) {
    let says = |name: &str| schema.get(name) == Some(&Value::Bool(true));
    let (embedded, either) = (says("x-kubernetes-embedded-resource"), says("x-kubernetes-int-or-string"));
    if embedded {
        add_embedded_members(schema);
    }
    if either && !schema.contains_key("type") {
        schema.entry("anyOf").or_insert_with(|| json!([{"type": "integer"}, {"type": "string"}]));
    }
    complete_embedded(schema);
}

/// Returns the extension that lists the fields for field selectors; it is published for custom kinds only.
pub(super) fn selectable_fields(row: &ResourceInfo) -> Option<(String, Value)> {
    let fields: Vec<Value> = row.selectable_fields.iter().map(|path| json!({"fieldPath": path})).collect();
    (!row.builtin && !fields.is_empty()).then(|| ("x-kubernetes-selectable-fields".to_owned(), fields.into()))
}

/// Returns the schema's name: `io.openshift.insights.v1alpha1.DataGather` (the group's labels reversed, version, kind).
pub(super) fn custom_name(row: &ResourceInfo, kind: &str) -> String {
    let group: Vec<&str> = row.group.rsplit('.').collect();
    format!("{}.{}.{kind}", group.join("."), row.version)
}
