//! Checks of texts: names, label keys and values, paths.

use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::{labels, names};

use crate::kinds::field::Field;

/// The longest name of a driver, in bytes.
const DRIVER_NAME_LENGTH: i64 = 63;

/// A text is a DNS subdomain.
pub(crate) fn subdomain(field: &Field<'_>, errors: &mut FieldErrors) {
    field.problems(names::dns1123_subdomain(field.text()), errors);
}

/// A text is a DNS label.
pub(crate) fn dns_label(field: &Field<'_>, errors: &mut FieldErrors) {
    field.problems(names::dns1123_label(field.text()), errors);
}

/// Keys of annotations, which are names of any case.
pub(crate) fn annotation_keys(annotations: &Field<'_>, errors: &mut FieldErrors) {
    for (key, _) in annotations.entries() {
        for problem in labels::key(&key.to_lowercase()) {
            errors.add(|| annotations.invalid_as(key, problem));
        }
    }
}

/// A text is a qualified name, as keys of labels are.
pub(crate) fn qualified(field: &Field<'_>, errors: &mut FieldErrors) {
    field.problems(labels::key(field.text()), errors);
}

/// A text is the value of a label.
pub(crate) fn label_value(field: &Field<'_>, errors: &mut FieldErrors) {
    field.problems(labels::value(field.text()), errors);
}

/// The name of a driver: a subdomain, in whatever case.
pub(crate) fn driver_name(field: &Field<'_>, errors: &mut FieldErrors) {
    let name = field.text();
    if name.is_empty() {
        errors.add(|| field.required(""));
        return;
    }
    if i64::try_from(name.len()).is_ok_and(|length| length > DRIVER_NAME_LENGTH) {
        errors.add(|| field.too_long(DRIVER_NAME_LENGTH));
    }
    field.problems(names::dns1123_subdomain(&name.to_lowercase()), errors);
}

/// A text that is not empty.
pub(crate) fn given(field: &Field<'_>, errors: &mut FieldErrors) {
    if field.text().is_empty() {
        errors.add(|| field.required(""));
    }
}

/// A path that does not lead upwards.
pub(crate) fn no_backsteps(field: &Field<'_>, errors: &mut FieldErrors) {
    if field.text().split('/').any(|part| part == "..") {
        errors.add(|| field.invalid("must not contain '..'"));
    }
}

/// What is said of the name of a finalizer without a domain.
pub(crate) const NOT_QUALIFIED: &str = "name is neither a standard finalizer name nor is it fully qualified";

/// Whether the name of a finalizer has no domain, and is none of Kubernetes' own.
pub(crate) fn is_bare(finalizer: &str) -> bool {
    !finalizer.contains('/') && !["kubernetes", "orphan", "foregroundDeletion"].contains(&finalizer)
}
