//! Checks constants whose validity only the called function knows.

use bumpalo::Bump;

use super::{Context, Overload, regex};
use crate::value::Value;

impl Overload {
    /// Whether a call with this string has a value: `duration('1h')` has one, `duration('1 hour')` has none.
    #[must_use]
    pub fn takes_text(&self, text: &str) -> bool {
        self.takes(&Value::String(text))
    }

    /// Whether a call with this number has a value: a timestamp may be out of range.
    #[must_use]
    pub fn takes_int(&self, number: i64) -> bool {
        self.takes(&Value::Int(number))
    }

    fn takes(&self, value: &Value<'_>) -> bool {
        let arena = Bump::new();
        (self.implementation)(&Context { arena: &arena }, &[*value]).is_ok()
    }
}

/// Whether a string is a regular expression; it is only parsed.
pub(crate) fn is_regex(pattern: &str) -> bool {
    regex::is_pattern(pattern)
}
