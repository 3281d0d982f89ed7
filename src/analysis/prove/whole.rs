//! The schema of whole objects: what a definition declares, and what every object has.

use admit_policy::GroupVersionKind;
use admit_policy::schema::{AdditionalProperties, Checks, Enumeration, Pattern, Schema, SchemaType};

/// A DNS subdomain.
pub(super) const NAME: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
/// A DNS label.
pub(super) const LABEL: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";

fn text(pattern: Option<&str>, most: Option<i64>) -> Schema {
    let checks = Checks { pattern: pattern.map(Pattern::new), max_length: most, ..Checks::default() };
    Schema { schema_type: Some(SchemaType::String), checks: checks.into(), ..Schema::default() }
}

/// The schema with what every object has. Rules of a definition see the name alone of the metadata.
pub(super) fn whole(
    schema: &Schema,
    kind: &GroupVersionKind,
    is_namespaced: bool,
    all_metadata: bool,
) -> Schema {
    let mut schema = schema.clone();
    schema.schema_type = Some(SchemaType::Object);
    let mut metadata = Schema { schema_type: Some(SchemaType::Object), ..Schema::default() };
    let mut name = text(Some(NAME), Some(253));
    let declared = schema.properties.get("metadata").and_then(|metadata| metadata.properties.get("name"));
    if let Some(declared) = declared {
        name.checks.all_of.push(declared.clone());
    }
    metadata.properties.insert("name".into(), name);
    metadata.checks.required.push("name".into());
    if is_namespaced {
        metadata.properties.insert("namespace".into(), text(Some(LABEL), Some(63)));
        metadata.checks.required.push("namespace".into());
    }
    if all_metadata {
        let entries = AdditionalProperties::Schema(Box::new(text(None, None)));
        let of_texts = Schema {
            schema_type: Some(SchemaType::Object),
            additional_properties: Some(entries),
            ..Schema::default()
        };
        metadata.properties.insert("labels".into(), of_texts.clone());
        metadata.properties.insert("annotations".into(), of_texts);
        let finalizers = Schema {
            schema_type: Some(SchemaType::Array),
            items: Some(Box::new(text(None, None))),
            ..Schema::default()
        };
        metadata.properties.insert("finalizers".into(), finalizers);
    }
    schema.properties.insert("metadata".into(), metadata);
    types(&mut schema, kind);
    schema
}

/// Says of which kind whole objects are.
pub(super) fn types(schema: &mut Schema, kind: &GroupVersionKind) {
    for (property, value) in [("apiVersion", kind.api_version()), ("kind", kind.kind.clone())] {
        let enumeration = Enumeration::new(vec![value.into()]);
        let checks = Checks { enumeration, ..Checks::default() };
        let only =
            Schema { schema_type: Some(SchemaType::String), checks: checks.into(), ..Schema::default() };
        schema.properties.insert(property.into(), only);
    }
    for property in ["apiVersion", "kind", "metadata"] {
        if !schema.checks.required.iter().any(|known| **known == *property) {
            schema.checks.required.push(property.into());
        }
    }
}
