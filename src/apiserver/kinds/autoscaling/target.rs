//! Validates references of autoscalers to other objects.

use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::names;

use crate::kinds::field::Field;

/// The rule for the `apiVersion` of a reference.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Version {
    /// Not validated.
    Any,
    /// Must be valid; the core group is allowed.
    Formed,
    /// Must be valid, with a group other than the core group.
    OfGroup,
}

/// Validates a reference to an object by its kind and name.
pub(super) fn reference(target: &Field<'_>, version: Version, errors: &mut FieldErrors) {
    for part in ["kind", "name"] {
        let part = target.get(part);
        if part.is_empty() {
            errors.add(|| part.required(""));
        } else {
            part.problems(names::path_segment(part.text(), false), errors);
        }
    }
    let given = target.get("apiVersion");
    let text = given.text();
    let slashes = text.matches('/').count();
    if version != Version::Any && slashes > 1 {
        errors.add(|| given.invalid(format!("unexpected GroupVersion string: {text}")));
    } else if version == Version::OfGroup && (slashes == 0 || text.starts_with('/')) {
        errors.add(|| given.invalid("apiVersion must specify API group"));
    }
}
