//! Validates what storage classes pass to their drivers.

use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::labels;

use crate::kinds::field::Field;

const MOST_PARAMETERS: i64 = 512;
/// Most bytes of all keys and values together.
const MOST_BYTES: i64 = 256 << 10;

/// Validates a provisioner: a qualified name, in any case.
pub(super) fn provisioner(field: &Field<'_>, errors: &mut FieldErrors) {
    if field.text().is_empty() {
        errors.add(|| field.required(""));
    } else {
        // The error shows the lower-case name, which was validated.
        let name = field.text().to_lowercase();
        for problem in labels::key(&name) {
            errors.add(|| field.invalid_as(name.as_str(), problem));
        }
    }
}

/// Validates number and total length of parameters.
pub(super) fn parameters(field: &Field<'_>, may_be_empty: bool, errors: &mut FieldErrors) {
    if i64::try_from(field.len()).is_ok_and(|count| count > MOST_PARAMETERS) {
        errors.add(|| field.too_long(MOST_PARAMETERS));
        return;
    }
    let mut bytes = 0_usize;
    for (key, value) in field.entries() {
        if key.is_empty() {
            errors.add(|| field.invalid_as(key, "field can not be empty."));
        }
        bytes = bytes.saturating_add(key.len()).saturating_add(value.text().len());
    }
    if i64::try_from(bytes).is_ok_and(|bytes| bytes > MOST_BYTES) {
        errors.add(|| field.too_long(MOST_BYTES));
    }
    if !may_be_empty && field.is_empty() {
        errors.add(|| field.required("must contain at least one key/value pair"));
    }
}
