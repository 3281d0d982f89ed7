//! Holds the text of a pattern while it is parsed, and builds the errors for an invalid one.

use std::fmt;

/// Why a pattern is invalid: the rule, and the part that violates it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Error<'p> {
    rule: &'static str,
    part: &'p str,
}

impl<'p> Error<'p> {
    pub(super) const fn new(rule: &'static str, part: &'p str) -> Self {
        Self { rule, part }
    }

    pub(super) const fn too_large(pattern: &'p str) -> Self {
        Self::new("expression too large", pattern)
    }
}

impl fmt::Display for Error<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: `{}`", self.rule, self.part)
    }
}

/// Returns the first character and the rest; where the result matters, the text is not empty.
pub(super) fn next_char(text: &str) -> (char, &str) {
    let mut chars = text.chars();
    (chars.next().unwrap_or('\0'), chars.as_str())
}

/// Returns the part of `text` before its suffix `after`.
pub(super) fn up_to<'t>(text: &'t str, after: &str) -> &'t str {
    text.get(..text.len().saturating_sub(after.len())).unwrap_or(text)
}
