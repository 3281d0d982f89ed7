//! References to objects by group, kind and name.

use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::names::NameRule;

use crate::kinds::field::Field;

/// A reference whose group may be left out (`TypedLocalObjectReference`).
pub(crate) fn typed(reference: &Field<'_>, errors: &mut FieldErrors) {
    let group = reference.get("apiGroup");
    if group.is_set() {
        group.named(NameRule::Subdomain, errors);
    }
    segment(&reference.get("kind"), errors);
    segment(&reference.get("name"), errors);
}

/// A text that has to be there, and to fit into a path.
pub(crate) fn segment(field: &Field<'_>, errors: &mut FieldErrors) {
    if field.text().is_empty() {
        errors.add(|| field.required(""));
    } else {
        field.named(NameRule::PathSegment, errors);
    }
}
