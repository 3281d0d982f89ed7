//! Validates references to objects by group, kind and name.

use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::names::NameRule;

use crate::kinds::field::Field;

/// Validates a reference with an optional group (`TypedLocalObjectReference`).
pub(crate) fn typed(reference: &Field<'_>, errors: &mut FieldErrors) {
    let group = reference.get("apiGroup");
    if group.is_set() {
        group.named(NameRule::Subdomain, errors);
    }
    segment(&reference.get("kind"), errors);
    segment(&reference.get("name"), errors);
}

/// Requires a string that is a valid path segment.
pub(crate) fn segment(field: &Field<'_>, errors: &mut FieldErrors) {
    if field.text().is_empty() {
        errors.add(|| field.required(""));
    } else {
        field.named(NameRule::PathSegment, errors);
    }
}
