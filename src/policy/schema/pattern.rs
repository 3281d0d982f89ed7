//! Checks `pattern`: a regular expression in Go's RE2 syntax, compiled once, at its first use: a CRD is read far more
//! often than objects are checked against it, and one pattern may take megabytes.

use std::fmt;
use std::sync::{Arc, OnceLock};

use admit_cel::{GoRegex, PatternError, PatternSum};

/// The pattern's text and its compiled form, which copies share.
///
/// ```
/// use admit_policy::schema::Pattern;
///
/// let pattern = Pattern::new("^[a-z]+$");
/// assert!(pattern.is_match("abc") && !pattern.is_match("a1"));
/// assert_eq!((pattern.text(), pattern.error()), ("^[a-z]+$", None));
/// assert!(Pattern::new("(").error().is_some());
/// ```
#[derive(Clone)]
pub struct Pattern {
    text: Box<str>,
    regex: Arc<OnceLock<Result<GoRegex, Box<str>>>>,
}

impl Pattern {
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self { text: text.into(), regex: Arc::default() }
    }

    /// Returns the text of the pattern.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the syntax error, in Go's words, if there is one.
    #[must_use]
    pub fn error(&self) -> Option<&str> {
        self.compiled().as_ref().err().map(AsRef::as_ref)
    }

    /// Whether it matches in the string; an invalid pattern never does.
    #[must_use]
    pub fn is_match(&self, text: &str) -> bool {
        self.compiled().as_ref().is_ok_and(|regex| regex.is_match(text))
    }

    /// Compiles it within a shared memory limit; false if the limit is exceeded. An invalid pattern takes no memory.
    pub(crate) fn fits(&self, sum: &mut PatternSum) -> bool {
        match sum.compile(&self.text) {
            Ok(regex) => {
                self.regex.get_or_init(|| Ok(regex));
                true
            }
            Err(PatternError::Invalid(error)) => {
                self.regex.get_or_init(|| Err(error.to_string().into()));
                true
            }
            Err(PatternError::TooMuch) => false,
        }
    }

    fn compiled(&self) -> &Result<GoRegex, Box<str>> {
        self.regex.get_or_init(|| GoRegex::new(&self.text).map_err(|error| error.to_string().into()))
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
