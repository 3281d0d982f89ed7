//! The codes of what lint finds.

use admit_policy::lint::CODES;

use crate::cli::releases;

/// Every warning, as `--deny` names them.
pub(super) const WARNINGS: &str = "warnings";

/// Codes of what a server would refuse, or nobody can read, beside [`releases::REFUSED`].
pub(super) const ERRORS: [&str; 2] = ["not-yaml", "refused"];

/// Codes of findings about files, with what they find.
pub(in crate::cli) const OF_FILES: [(&str, &str); 3] = [
    ("unreadable", "The file cannot be read."),
    ("no-manifest", "The document is no manifest."),
    ("unknown-code", "The comment silences nothing that there is."),
];

/// The codes of all that may be denied and silenced.
pub(super) fn codes() -> impl Iterator<Item = &'static str> {
    CODES.iter().chain(&OF_FILES).chain(&releases::TAKEN).map(|(code, _)| *code)
}
