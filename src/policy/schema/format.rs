//! `format` of strings: which formats a server checks, and what each accepts.

/// Whether a string with this format is checked at all; other formats are ignored.
#[must_use]
pub(super) fn is_supported(format: &str) -> bool {
    is_known(format)
}

/// Whether there is a check for the format.
#[must_use]
pub(super) fn is_known(format: &str) -> bool {
    check_of(&normalised(format)).is_some()
}

/// Whether the text has the format; any text has an unknown one.
#[must_use]
pub(super) fn matches(format: &str, text: &str) -> bool {
    check_of(&normalised(format)).is_none_or(|check| check(text))
}

/// Dashes in a format's name do not count: `date-time` is `datetime`.
fn normalised(format: &str) -> String {
    format.replace('-', "")
}

fn check_of(name: &str) -> Option<fn(&str) -> bool> {
    match name {
        "password" => Some(|_| true),
        _ => None,
    }
}
