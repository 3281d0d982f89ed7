//! Defines how expressions see objects, and which objects may have undeclared fields.

use admit_cel::escape_property;
use admit_policy::schema::{AdditionalProperties, ListType, Schema, SchemaType};

/// The reason reported for a map whose entries are not all known.
pub(super) const UNDECLARED: &str = "entries that were undeclared properties";

/// How expressions see objects.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum View {
    /// Through the types that a definition declares.
    Typed,
    /// As untyped JSON.
    Plain,
}

/// Reports whether objects may have fields that the schema does not declare.
pub(super) fn is_open(schema: &Schema) -> bool {
    let allows = matches!(schema.additional_properties, Some(AdditionalProperties::Allowed(true)));
    schema.preserves_unknown_fields() || schema.embedded_resource || allows
}

/// Reports whether expressions see values of the schema otherwise where they see plain JSON: sets and map lists in their order, times,
/// spans and bytes as strings, whole numbers as integers, nulls where a typed object has no field, undeclared fields, and
/// properties under their own names.
pub(super) fn means_less_untyped(schema: &Schema) -> bool {
    let is_decoded =
        matches!(schema.checks.format.as_deref(), Some("byte" | "date" | "date-time" | "duration"));
    let is_keyed = matches!(schema.list_type, Some(ListType::Set | ListType::Map));
    let is_number = schema.schema_type == Some(SchemaType::Number);
    if is_decoded || is_keyed || is_number || schema.nullable || is_open(schema) {
        return true;
    }
    let is_renamed = |name: &str| escape_property(name).is_none_or(|escaped| *escaped != *name);
    schema.properties.iter().any(|(name, child)| is_renamed(name) || means_less_untyped(child))
        || schema.items.as_deref().is_some_and(means_less_untyped)
        || schema.additional_schema().is_some_and(means_less_untyped)
}
