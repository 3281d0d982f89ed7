//! YAML text to a value, read as Kubernetes reads manifests: one document, JSON's types; and values as YAML.

use serde_json::Value;

use super::json::Document;

/// # Errors
/// What is wrong with the text.
pub(super) fn parse(_bytes: &[u8]) -> Result<Document, String> {
    Err("yaml: bodies in YAML are not supported yet".to_owned())
}

/// Objections of strict validation, as the YAML reader words them together.
pub(super) fn strict_text(objections: &[String]) -> String {
    objections.join(", ")
}

/// The document as YAML.
#[must_use]
pub fn to_yaml(document: &Value) -> String {
    document.to_string()
}
