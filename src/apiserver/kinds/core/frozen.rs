//! Validates immutable ConfigMaps and Secrets, and the keys of both.

use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::go;

use crate::kinds::field::Field;
use crate::kinds::shared::config_key;

/// Most bytes of all values of one object together.
pub(super) const SIZE_LIMIT: i64 = 1 << 20;

/// Refuses changes of `fields`, which hold the content, if `immutable` was set.
pub(super) fn unchanged(
    object: &Field<'_>,
    old: &Field<'_>,
    fields: &[&'static str],
    errors: &mut FieldErrors,
) {
    const WHY: &str = "field is immutable when `immutable` is set";
    let flag = object.get("immutable");
    if !old.get("immutable").flag() {
        return;
    }
    if !flag.flag() {
        errors.add(|| flag.forbidden(WHY));
    }
    for field in fields {
        let own = object.get(field);
        if own.value() != old.get(field).value() {
            errors.add(|| own.forbidden(WHY));
        }
    }
}

/// Validates a key, which becomes a file name.
pub(super) fn key(key: &str, member: &Field<'_>, errors: &mut FieldErrors) {
    for problem in config_key::problems(key) {
        errors.add(|| member.invalid_as(key, problem));
    }
}

/// Returns the number of bytes of a base64 value after decoding.
pub(super) fn decoded_length(text: &str) -> usize {
    go::json::bytes(text).map_or(text.len(), |bytes| bytes.len())
}
