//! Reads and validates the object metadata of policies, bindings and webhook configurations.

use admit_apimachinery::field_error::FieldError;
use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::names::{self, NameRule};
use serde_json::Value;

use super::validate_object_meta;
use crate::read::decode::{DecodeError, Fields};
use crate::read::path::Path;

/// The name of the document, after all of its metadata was checked as kube-apiserver checks that of its own
/// cluster-scoped kinds.
pub(crate) fn name(document: &Fields<'_>, errors: &mut FieldErrors) -> Result<String, DecodeError> {
    let metadata = document.object("metadata")?;
    let name = metadata.string("name")?;
    let prefix = metadata.string("generateName")?;
    let mut complain = |field: &str, name: &str, complaints: Vec<String>| {
        let at = metadata.path_of(field);
        errors.extend(complaints.into_iter().map(|complaint| FieldError::invalid(&at, name, complaint)));
    };
    if !prefix.is_empty() {
        complain("generateName", &prefix, NameRule::Subdomain.problems(&prefix, true));
    }
    if !name.is_empty() {
        complain("name", &name, names::dns1123_subdomain(&name));
    } else if prefix.is_empty() {
        errors.push(FieldError::required(metadata.path_of("name"), "name or generateName is required"));
    }
    if let Some(fields) = document.get("metadata").and_then(Value::as_object) {
        validate_object_meta(fields, false, &Path::Root("metadata"), errors);
    }
    Ok(name)
}

/// A wrong JSON type, as one more complaint.
pub(crate) fn wrong_type(error: &DecodeError) -> FieldError {
    let detail = format!("must be {}, not {}", error.expected, error.found);
    FieldError::new(
        admit_apimachinery::field_error::FieldErrorKind::TypeInvalid,
        &error.path,
        admit_apimachinery::field_error::BadValue::Omitted,
        detail,
    )
}
