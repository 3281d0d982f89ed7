//! Writes as JSON how a schema merges the fields of objects: types, kinds of lists and maps, and the defaults of keys.

use serde_json::{Map, Value, json};

use super::{AdditionalProperties, ListType, MapType, Schema};

/// The outline of a schema, in the form of `openAPIV3Schema`.
#[must_use]
pub(crate) fn outline(schema: &Schema) -> Value {
    let mut node = Map::new();
    let mut set = |name: &str, value: Value| {
        node.insert(name.to_owned(), value);
    };
    if let Some(ty) = schema.schema_type.as_ref().filter(|_| !schema.int_or_string) {
        set("type", ty.as_str().into());
    }
    for (name, flag) in [
        ("x-kubernetes-preserve-unknown-fields", schema.preserves_unknown_fields()),
        ("x-kubernetes-embedded-resource", schema.embedded_resource),
    ] {
        if flag {
            set(name, true.into());
        }
    }
    if let Some(default) = &schema.default {
        set("default", default.clone());
    }
    if let Some(items) = &schema.items {
        set("items", outline(items));
    }
    if !schema.properties.is_empty() {
        let properties = schema.properties.iter().map(|(name, child)| (name.to_string(), outline(child)));
        set("properties", Value::Object(properties.collect()));
    }
    match &schema.additional_properties {
        Some(AdditionalProperties::Schema(inner)) => set("additionalProperties", outline(inner)),
        Some(AdditionalProperties::Allowed(allowed)) => set("additionalProperties", (*allowed).into()),
        None => {}
    }
    match &schema.list_type {
        Some(ListType::Set) => set("x-kubernetes-list-type", "set".into()),
        Some(ListType::Map) => set("x-kubernetes-list-type", "map".into()),
        Some(ListType::Atomic | ListType::Other(_)) | None => {}
    }
    if !schema.list_map_keys.is_empty() {
        set("x-kubernetes-list-map-keys", json!(schema.list_map_keys));
    }
    if schema.map_type == Some(MapType::Atomic) {
        set("x-kubernetes-map-type", "atomic".into());
    }
    Value::Object(node)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::parse;

    #[test]
    fn an_outline_keeps_what_merging_asks_for() {
        let schema = json!({"type": "object", "properties": {
            "parts": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "properties": {"name": {"type": "string", "default": "x"}}}},
            "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": {"type": "integer"}}}});
        let parsed = parse(&schema, &crate::read::path::Path::Nil).unwrap();
        assert_eq!(outline(&parsed), schema);
    }
}
