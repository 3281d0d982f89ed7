//! Lists the codes of lint findings.

use admit_policy::lint::CODES;

/// Codes of errors: what a server would reject or what cannot be parsed, beside [`REFUSED`].
pub(super) const ERRORS: [&str; 2] = ["not-yaml", "refused"];

/// Codes of findings about files, with descriptions.
pub const OF_FILES: [(&str, &str); 5] = [
    ("unreadable", "The file cannot be read."),
    ("no-manifest", "The document is no manifest."),
    ("template", "The file is a template, which is rendered to manifests."),
    ("duplicate", "Another document has the same kind, namespace and name."),
    ("unknown-code", "The comment silences nothing that there is."),
];

/// Codes of what a release would reject, with descriptions.
pub const REFUSED: [(&str, &str); 3] = [
    ("release-refused", "A release would not store this."),
    ("release-too-costly", "A release would not store this for its cost."),
    ("release-not-served", "A release does not know the kind."),
];

/// Codes of what a release would accept, but with another effect than written.
pub const TAKEN: [(&str, &str); 2] = [
    ("release-dropped", "A release takes this without the field."),
    ("release-unchecked", "A release does not check the format."),
];

/// Returns the codes that can be denied and suppressed.
///
/// ```
/// assert!(admit_language::lint::codes().any(|code| code == "unused-variable"));
/// ```
pub fn codes() -> impl Iterator<Item = &'static str> {
    CODES.iter().chain(&OF_FILES).chain(&TAKEN).map(|(code, _)| *code)
}
