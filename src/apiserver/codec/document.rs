//! What bytes are read as: a value of any kind, or why there is none.

use std::fmt;

use admit_policy::json::JsonError;
use serde_json::Value;

use crate::status::Refusal;

/// A body that was read.
#[derive(Debug)]
pub(crate) struct Document {
    pub value: Value,
    /// Paths of duplicate members, and for YAML whole sentences about them, up to a limit.
    pub duplicates: Vec<String>,
}

/// Why a body cannot be read.
#[derive(Debug)]
pub(crate) enum Unread {
    /// In Kubernetes' words.
    Mistake(String),
    /// The same of an annotation that stands for a field; those that there are are sound.
    Inconvertible(String),
    /// It may be sound, and holds more than is taken.
    TooMuch(String),
}

impl Unread {
    /// The refusal of the body, which for a mistake `worded` makes.
    pub(crate) fn refusal(self, worded: impl FnOnce(String) -> Refusal) -> Refusal {
        match self {
            Self::Mistake(why) | Self::Inconvertible(why) => worded(why),
            Self::TooMuch(why) => Refusal::too_large_because(format!("the body holds {why}")),
        }
    }
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mistake(why) | Self::Inconvertible(why) | Self::TooMuch(why) => f.write_str(why),
        }
    }
}

impl From<JsonError> for Unread {
    fn from(error: JsonError) -> Self {
        match error {
            JsonError::Syntax(why) => Self::Mistake(why.to_string()),
            JsonError::TooHeavy(limit) => Self::TooMuch(limit.to_string()),
        }
    }
}
