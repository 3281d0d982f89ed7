//! Regular expressions in Go's syntax.

use regex_automata::meta::Regex;

use crate::value::EvalError;

/// The compiled form of a pattern.
///
/// # Errors
///
/// `error parsing regexp: …`.
pub(crate) fn compile(pattern: &str) -> Result<Regex, EvalError> {
    Regex::new(pattern).map_err(|error| EvalError::Other(format!("error parsing regexp: {error}").into()))
}
