//! Checks what stands at the root of a schema whose version has a status subresource. The status is validated alone then, so nothing there
//! may constrain it together with the rest.

use admit_apimachinery::field_error::FieldError;
use admit_apimachinery::findings::FieldErrors;
use serde_json::Value;

use super::internal;
use crate::read::path::Path;

/// The fields that may be set, as errors list them.
const ALLOWED: [&str; 22] = [
    "Description",
    "Type",
    "Format",
    "Title",
    "Maximum",
    "ExclusiveMaximum",
    "Minimum",
    "ExclusiveMinimum",
    "MaxLength",
    "MinLength",
    "Pattern",
    "MaxItems",
    "MinItems",
    "UniqueItems",
    "MultipleOf",
    "Required",
    "Items",
    "Properties",
    "ExternalDocs",
    "Example",
    "XPreserveUnknownFields",
    "XValidations",
];

/// Validates a schema as it was sent. Fields are looked at in the order of their declaration, and only the first error is reported.
pub(super) fn root(schema: &Value, path: &Path<'_>, errors: &mut FieldErrors) {
    const WHERE: &str = "at the root of the schema if the status subresource is enabled";
    for (name, value) in internal::set_fields(schema) {
        if name == "Type" && *value != "object" {
            let detail = format!("only \"object\" is allowed as the type {WHERE}");
            let shown = value.as_str().unwrap_or_default();
            return errors.push(FieldError::invalid(path.child("type"), shown, detail));
        }
        if !ALLOWED.contains(&name) {
            return errors.add(|| {
                let detail = format!("only [{}] fields are allowed {WHERE}", ALLOWED.join(" "));
                FieldError::invalid(path, internal::schema_text(schema), detail)
            });
        }
    }
}
