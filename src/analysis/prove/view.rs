//! How documents are seen, and which objects may have more in them than their schemas say.

use admit_policy::schema::{AdditionalProperties, Schema};

/// Why of a map not all entries are known.
pub(super) const UNDECLARED: &str = "entries that were undeclared properties";

/// How documents are seen.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum View {
    /// Through the types that a definition declares.
    Typed,
    /// As they are.
    Plain,
}

/// Whether objects may have fields that the schema does not declare.
pub(super) fn is_open(schema: &Schema) -> bool {
    let allows = matches!(schema.additional_properties, Some(AdditionalProperties::Allowed(true)));
    schema.preserves_unknown_fields() || schema.embedded_resource || allows
}
