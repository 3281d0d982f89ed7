//! What classes hand on to their drivers.

use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::labels;

use crate::kinds::field::Field;

const MOST_PARAMETERS: i64 = 512;
/// Keys and values together, in bytes.
const MOST_BYTES: i64 = 256 << 10;

/// Who provisions volumes: a qualified name, in whatever case.
pub(super) fn provisioner(field: &Field<'_>, errors: &mut FieldErrors) {
    if field.text().is_empty() {
        errors.add(|| field.required(""));
    } else {
        // What is told is what was looked at.
        let name = field.text().to_lowercase();
        for problem in labels::key(&name) {
            errors.add(|| field.invalid_as(name.as_str(), problem));
        }
    }
}

/// Not too many parameters, and not too long ones.
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
