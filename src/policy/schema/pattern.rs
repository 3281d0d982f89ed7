//! `pattern`: a regular expression in Go's RE2 syntax, compiled once.

use std::fmt;

use admit_cel::GoRegex;

/// The text as written and its compiled form.
#[derive(Clone)]
pub struct Pattern {
    text: Box<str>,
    regex: Result<GoRegex, Box<str>>,
}

impl Pattern {
    #[must_use]
    pub fn new(text: &str) -> Self {
        let regex = GoRegex::new(text).map_err(|error| error.to_string().into());
        Self { text: text.into(), regex }
    }

    /// As written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What is wrong with it, in Go's words.
    #[must_use]
    pub fn error(&self) -> Option<&str> {
        self.regex.as_ref().err().map(AsRef::as_ref)
    }

    /// Whether it occurs in the text; one that did not compile never does.
    #[must_use]
    pub fn is_match(&self, text: &str) -> bool {
        self.regex.as_ref().is_ok_and(|regex| regex.is_match(text))
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pattern").field(&self.text).finish()
    }
}
