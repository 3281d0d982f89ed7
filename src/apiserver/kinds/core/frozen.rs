//! Immutable ConfigMaps and Secrets, and the keys of both.

use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::go;

use crate::kinds::field::Field;

/// All values of one object together, in bytes.
pub(super) const SIZE_LIMIT: i64 = 1 << 20;
const KEY_FORM: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or \
    'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

/// What changed although `immutable` was set; `fields` hold the content.
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

/// A key is the name of a file.
pub(super) fn key(key: &str, member: &Field<'_>, errors: &mut FieldErrors) {
    let mut problems = Vec::new();
    if key.len() > 253 {
        problems.push("must be no more than 253 characters");
    }
    if key.is_empty() || !key.bytes().all(|c| c.is_ascii_alphanumeric() || b"-._".contains(&c)) {
        problems.push(KEY_FORM);
    }
    // As file names these would lead out of the folder that the keys are mounted in.
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

/// How many bytes a value has once it is decoded.
pub(super) fn decoded_length(text: &str) -> usize {
    go::json::bytes(text).map_or(text.len(), |bytes| bytes.len())
}
