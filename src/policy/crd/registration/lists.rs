//! Validates `x-kubernetes-list-type` and `x-kubernetes-map-type` at registration: where they may be set, and what
//! they require of keys and items.

use admit_apimachinery::field_error::{BadValue, FieldError};
use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::go;

use super::demands::Demands;
use super::internal;
use super::node::Node;
use crate::read::path::Path;
use crate::schema::{ListType, MapType, Schema, SchemaType, Unsupported};

pub(super) fn validate(node: &Node<'_>, demands: &Demands, errors: &mut FieldErrors) {
    map_type(node, errors);
    list_type(node, demands.atomic_set_items, errors);
    map_list(node, errors);
    if demands.sound_items {
        items_of_sets_and_maps(node.schema, node.path, errors);
    }
}

/// Whether the node is a set of lists or maps that are no atoms.
pub(super) fn has_composite_set_items(schema: &Schema) -> bool {
    let is_set = schema.list_type == Some(ListType::Set);
    schema.items.as_deref().filter(|_| is_set).is_some_and(|items| composite_keyword(items).is_some())
}

/// Whether the node is a set or map list whose items may be null or without their keys.
pub(super) fn has_unsound_items(schema: &Schema) -> bool {
    let mut errors = FieldErrors::default();
    items_of_sets_and_maps(schema, &Path::Nil, &mut errors);
    !errors.is_empty()
}

fn map_type(node: &Node<'_>, errors: &mut FieldErrors) {
    let Some(map_type) = &node.schema.map_type else { return };
    must_have_type(node, &SchemaType::Object, "must be object if x-kubernetes-map-type is specified", errors);
    if let MapType::Other(text) = map_type {
        let at = node.path.child("x-kubernetes-map-type");
        errors.push(FieldError::not_supported(at, &**text, ["atomic", "granular"]));
    }
}

fn list_type(node: &Node<'_>, atomic_set_items: bool, errors: &mut FieldErrors) {
    let Some(list_type) = &node.schema.list_type else { return };
    let at = node.path.child("x-kubernetes-list-type");
    if !node.schema.is_type(&SchemaType::Array) {
        must_have_type(
            node,
            &SchemaType::Array,
            "must be array if x-kubernetes-list-type is specified",
            errors,
        );
    } else if atomic_set_items
        && *list_type == ListType::Set
        && let Some(items) = &node.schema.items
    {
        items_of_set(items, node, errors);
    }
    if let ListType::Other(text) = list_type {
        errors.push(FieldError::not_supported(at, &**text, ["atomic", "set", "map"]));
    }
    if !node.schema.list_map_keys.is_empty() && *list_type != ListType::Map {
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        errors.push(FieldError::invalid(at, list_type_text(list_type), detail));
    }
}

fn must_have_type(node: &Node<'_>, expected: &SchemaType, detail: &str, errors: &mut FieldErrors) {
    let at = node.path.child("type");
    match &node.schema.schema_type {
        None => errors.push(FieldError::required(at, detail)),
        Some(found) if found != expected => errors.push(FieldError::invalid(at, found.as_str(), detail)),
        Some(_) => {}
    }
}

fn items_of_set(items: &Schema, node: &Node<'_>, errors: &mut FieldErrors) {
    const DETAIL: &str = "must be atomic as item of a list with x-kubernetes-list-type=set";
    let at = node.path.child("items");
    // The API server shows the list type in both cases.
    let shown = items.list_type.as_ref().map_or(BadValue::Json(serde_json::Value::Null), |list_type| {
        BadValue::from(list_type_text(list_type))
    });
    if let Some(keyword) = composite_keyword(items) {
        errors.push(FieldError::invalid(at.child(keyword), shown, DETAIL));
    }
}

/// The keyword by which an item of a set is no atom.
fn composite_keyword(items: &Schema) -> Option<&'static str> {
    match &items.schema_type {
        Some(SchemaType::Array) if !matches!(items.list_type, None | Some(ListType::Atomic)) => {
            Some("x-kubernetes-list-type")
        }
        Some(SchemaType::Object) if items.map_type != Some(MapType::Atomic) => Some("x-kubernetes-map-type"),
        _ => None,
    }
}

fn map_list(node: &Node<'_>, errors: &mut FieldErrors) {
    let schema = node.schema;
    let keys_at = node.path.child("x-kubernetes-list-map-keys");
    let mut earlier = std::collections::HashSet::new();
    if schema.list_type.is_none() && !schema.list_map_keys.is_empty() {
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        errors.push(FieldError::required(node.path.child("x-kubernetes-list-type"), detail));
    }
    if schema.list_type != Some(ListType::Map) {
        return;
    }
    if schema.list_map_keys.is_empty() {
        errors.push(FieldError::required(keys_at, "must not be empty if x-kubernetes-list-type is map"));
    }
    let items_at = node.path.child("items");
    let Some(items) = &schema.items else {
        let list = schema.unsupported.iter().find_map(|keyword| match keyword {
            Unsupported::ItemsList(_, list) => Some(list),
            _ => None,
        });
        errors.push(match list {
            None => FieldError::required(items_at, "must have a schema if x-kubernetes-list-type is map"),
            Some(list) => {
                let detail = "must only have a single schema if x-kubernetes-list-type is map";
                FieldError::invalid(items_at, internal::items(list), detail)
            }
        });
        return;
    };
    if !items.is_type(&SchemaType::Object) {
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        errors.push(FieldError::invalid(items_at.child("type"), items.type_text(), detail));
        return;
    }
    let keys: Vec<_> = schema.list_map_keys.iter().map(|key| serde_json::Value::from(&**key)).collect();
    let all_keys = BadValue::Verbatim(go::json::text(&serde_json::Value::Array(keys)));
    let properties = items_at.child("properties");
    for key in &schema.list_map_keys {
        match items.properties.get(key) {
            None => {
                let detail = "entries must all be names of item properties";
                errors.add(|| FieldError::invalid(keys_at, all_keys.clone(), detail));
            }
            Some(property)
                if matches!(property.schema_type, Some(SchemaType::Array | SchemaType::Object)) =>
            {
                let at = properties.key(key);
                let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                errors.push(FieldError::invalid(at.child("type"), items.type_text(), detail));
            }
            Some(_) => {}
        }
        if !earlier.insert(key) {
            errors
                .add(|| FieldError::invalid(keys_at, all_keys.clone(), "must not contain duplicate entries"));
        }
    }
}

/// Items of sets and map lists are never null, and every one of a map list has its keys.
fn items_of_sets_and_maps(schema: &Schema, path: &Path<'_>, errors: &mut FieldErrors) {
    let (Some(items), Some(list_type @ (ListType::Set | ListType::Map))) = (&schema.items, &schema.list_type)
    else {
        return;
    };
    let at = path.child("items");
    if items.nullable {
        let detail =
            format!("cannot be nullable when x-kubernetes-list-type is {}", list_type_text(list_type));
        errors.push(FieldError::forbidden(at.child("nullable"), detail));
    }
    if *list_type == ListType::Set {
        return;
    }
    let properties = at.child("properties");
    for key in &schema.list_map_keys {
        let Some(property) = items.properties.get(key) else { continue };
        let at = properties.key(key);
        if !items.checks.required.contains(key) && property.default.is_none() {
            let detail = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required \
                          property";
            errors.push(FieldError::required(at.child("default"), detail));
        }
        if property.nullable {
            let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.push(FieldError::forbidden(at.child("nullable"), detail));
        }
    }
}

fn list_type_text(list_type: &ListType) -> &str {
    match list_type {
        ListType::Atomic => "atomic",
        ListType::Set => "set",
        ListType::Map => "map",
        ListType::Other(text) => text,
    }
}
