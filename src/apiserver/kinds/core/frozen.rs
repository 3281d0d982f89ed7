//! Validates immutable ConfigMaps and Secrets, and the keys of both.

use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::go;

use crate::kinds::field::Field;

/// Most bytes of all values of one object together.
pub(super) const SIZE_LIMIT: i64 = 1 << 20;
const KEY_FORM: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or \
    'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

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
    let mut problems = Vec::new();
    if key.len() > 253 {
        problems.push("must be no more than 253 characters");
    }
    if key.is_empty() || !key.bytes().all(|c| c.is_ascii_alphanumeric() || b"-._".contains(&c)) {
        problems.push(KEY_FORM);
    }
    // As file names these would refer outside the mounted directory.
    if key == "." {
        problems.push("must not be '.'");
    } else if key == ".." {
        problems.push("must not be '..'");
    } else if key.starts_with("..") {
        problems.push("must not start with '..'");
    }
    for problem in problems {
        errors.add(|| member.invalid_as(key, problem));
    }
}

/// Returns the number of bytes of a base64 value after decoding.
pub(super) fn decoded_length(text: &str) -> usize {
    go::json::bytes(text).map_or(text.len(), |bytes| bytes.len())
}
