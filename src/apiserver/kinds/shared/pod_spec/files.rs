//! Validates paths and modes of files in volumes.

use admit_apimachinery::findings::FieldErrors;

use super::{local_path, source_kinds};
use crate::kinds::field::Field;

/// Validates the file for one key.
pub(super) fn key_to_path(item: &Field<'_>, errors: &mut FieldErrors) {
    source_kinds::required(item, &["key", "path"], errors);
    local_path(&item.get("path"), errors);
    mode(&item.get("mode"), errors);
}

/// Validates the mode bits of a file.
pub(super) fn mode(mode: &Field<'_>, errors: &mut FieldErrors) {
    if mode.integer().is_some_and(|bits| !(0..=0o777).contains(&bits)) {
        errors.add(|| mode.invalid("must be a number between 0 and 0777 (octal), both inclusive"));
    }
}
