//! What is drawn: a field, or what an expression says of an object.

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
    /// What an expression over `self` comes to: a text, or true or false.
    State {
        /// What it is called; the expression itself where it has no name.
        name: String,
        /// The expression.
        expression: String,
    },
}

impl Subject {
    /// The state that an expression says, with a name before it or none: `name=EXPRESSION`.
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

    /// The expression, where it is one.
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
