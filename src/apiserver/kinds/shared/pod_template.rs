//! Templates of pods, which workloads hold.

use admit_apimachinery::field_error::{BadValue, FieldError, FieldErrorKind};
use admit_apimachinery::findings::FieldErrors;
use serde_json::Value;

use super::label_selector;
use crate::kinds::field::Field;
use crate::status::Cause;
use crate::validation;

/// What is wrong with a template, which replaces `old` if there is one (`ValidatePodTemplateSpec`).
pub(crate) fn validate(template: &Field<'_>, _old: Option<&Value>, errors: &mut FieldErrors) {
    let metadata = template.get("metadata");
    // The paths leave the metadata out.
    label_selector::label_pairs(&template.get("labels").with(metadata.get("labels").value()), errors);
    let spec = template.get("spec");
    let causes = validation::pod_spec(spec.value(), &spec.to_string());
    errors.extend(causes.into_iter().map(|cause| told(&cause)));
}

/// An error that is there as the cause of a status.
fn told(cause: &Cause) -> FieldError {
    if let Some(more) = cause.more() {
        return FieldError::and_more(more);
    }
    let kind = FieldErrorKind::of_reason(&cause.reason).unwrap_or(FieldErrorKind::Invalid);
    let detail = cause.message.strip_prefix(kind.title()).unwrap_or(&cause.message);
    FieldError::new(kind, &cause.field, BadValue::Omitted, detail.trim_start_matches(": "))
}
