//! Names what is drawn: a field, or an expression over an object.

use std::fmt;

use super::field::FieldPath;

/// What is drawn.
///
/// ```
/// use admit_analysis::states::Subject;
///
/// let field = Subject::Field("status.phase".parse()?);
/// assert_eq!(field.to_string(), "status.phase");
/// let state = Subject::state("phase=has(self.status) ? 'Seen' : 'New'");
/// assert_eq!((state.to_string(), state.expression()), ("phase".to_owned(), Some("has(self.status) ? 'Seen' : 'New'")));
/// assert_eq!(Subject::state("self.a == 'b'").to_string(), "self.a == 'b'");
/// # Ok::<(), admit_analysis::states::FieldPathError>(())
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Subject {
    /// The value of a field.
    Field(FieldPath),
    /// The value of an expression over `self`: a string or a boolean.
    State {
        /// Its name; the expression itself if it has none.
        name: String,
        /// The expression.
        expression: String,
    },
}

impl Subject {
    /// Parses an expression with an optional name: `name=EXPRESSION`.
    #[must_use]
    pub fn state(text: &str) -> Self {
        let is_name = |name: &str| {
            name.starts_with(|c: char| c.is_ascii_alphabetic())
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
        };
        match text.split_once('=') {
            Some((name, rest)) if is_name(name.trim()) && !rest.starts_with('=') => {
                Self::State { name: name.trim().to_owned(), expression: rest.trim().to_owned() }
            }
            _ => Self::State { name: text.trim().to_owned(), expression: text.trim().to_owned() },
        }
    }

    /// Returns the expression, if it is one.
    #[must_use]
    pub fn expression(&self) -> Option<&str> {
        match self {
            Self::Field(_) => None,
            Self::State { expression, .. } => Some(expression),
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(field) => field.fmt(f),
            Self::State { name, .. } => f.write_str(name),
        }
    }
}
