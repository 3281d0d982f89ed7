//! Defines how expressions see objects, and which objects may have undeclared fields.

use admit_policy::schema::{AdditionalProperties, Schema};

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
