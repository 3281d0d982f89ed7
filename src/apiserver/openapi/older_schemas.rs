//! Builds the schemas of custom kinds for `/openapi/v2`. kubectl validates by them and takes any schema with `properties` or
//! `items` for complete, so less is published than in v3: nothing below fields that preserve unknown members.
//!
//! Input: the rows of custom resources. Output: a v3 document whose schemas of these kinds are replaced, in v3 notation.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::custom::{add_embedded_members, add_object_members, custom_name, extensions};
use crate::resources::ResourceInfo;

const OPEN: &str = "x-kubernetes-preserve-unknown-fields";
const EMBEDDED: &str = "x-kubernetes-embedded-resource";

/// Replaces the schemas of custom kinds in a v3 document.
pub(super) fn replace(document: &mut Value, rows: &[Arc<ResourceInfo>]) {
    let Some(schemas) = document.pointer_mut("/components/schemas") else { return };
    for row in rows.iter().filter(|row| !row.builtin) {
        if let Some(published) = schemas.get_mut(custom_name(row, &row.kind)) {
            *published = Value::Object(schema(row));
        }
    }
}

fn schema(row: &ResourceInfo) -> Map<String, Value> {
    let mut schema = match row.schema.as_deref() {
        Some(Value::Object(schema)) if !says(schema, OPEN) => {
            let mut schema = schema.clone();
            strip(&mut schema);
            add_object_members(&mut schema);
            each_below(&mut schema, &complete);
            schema
        }
        // Without the members that every object has, since kubectl would then reject all others.
        _ => Map::from_iter([("type".to_owned(), json!("object"))]),
    };
    schema.extend(extensions(row));
    schema
}

/// Removes what v2 cannot express, and what kubectl would take for a complete list of fields.
fn strip(schema: &mut Map<String, Value>) {
    for junctor in ["allOf", "anyOf", "oneOf", "not"] {
        schema.shift_remove(junctor);
    }
    let is_nullable = schema.shift_remove("nullable") == Some(Value::Bool(true));
    let is_open = says(schema, OPEN);
    if is_nullable || is_open {
        schema.shift_remove("items");
        schema.shift_remove("properties");
    }
    let kind = schema.get("type").and_then(Value::as_str).unwrap_or_default();
    let endless = kind == "array" && !schema.contains_key("items");
    if is_nullable || endless || (is_open && kind == "object") {
        schema.shift_remove("type");
    }
    require_less(schema);
    each_below(schema, &strip);
}

/// Removes nullable fields from `required`, since kubectl takes null for absent.
fn require_less(schema: &mut Map<String, Value>) {
    let nullable = |inner: &Value| inner.get("nullable") == Some(&Value::Bool(true));
    if schema.get("additionalProperties").is_some_and(nullable) {
        schema.shift_remove("required");
        return;
    }
    let Some(mut required) = schema.shift_remove("required") else { return };
    let properties = schema.get("properties");
    if let Some(names) = required.as_array_mut() {
        let property = |name: &Value| properties?.get(name.as_str()?);
        names.retain(|name| !property(name).is_some_and(nullable));
    }
    if required.as_array().is_none_or(|names| !names.is_empty()) {
        schema.insert("required".to_owned(), required);
    }
}

/// Adds the object members to embedded objects, unless those would be the only known ones.
fn complete(schema: &mut Map<String, Value>) {
    each_below(schema, &complete);
    if says(schema, EMBEDDED) && !says(schema, OPEN) {
        add_embedded_members(schema);
    }
}

fn each_below(schema: &mut Map<String, Value>, change: &dyn Fn(&mut Map<String, Value>)) {
    for member in ["items", "additionalProperties"] {
        if let Some(Value::Object(inner)) = schema.get_mut(member) {
            change(inner);
        }
    }
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.values_mut().filter_map(Value::as_object_mut).for_each(change);
    }
}

fn says(schema: &Map<String, Value>, name: &str) -> bool {
    schema.get(name) == Some(&Value::Bool(true))
}
