//! Represents the result of parsing a body: a value of any kind, or the reason why there is none.

use std::fmt;

use admit_policy::json::JsonError;
use serde_json::Value;

use crate::status::Refusal;

/// A parsed body.
#[derive(Debug)]
pub(crate) struct Document {
    pub value: Value,
    /// Paths of duplicate members, or for YAML whole sentences about them, up to a limit.
    pub duplicates: Vec<String>,
}

/// Why a body cannot be read.
#[derive(Debug)]
pub(crate) enum Unread {
    /// Invalid, in Kubernetes' words.
    Mistake(String),
    /// An annotation that represents a field is invalid.
    Inconvertible(String),
    /// The contents exceed a limit, and may be valid.
    TooMuch(String),
}

impl Unread {
    /// Builds the response; `worded` builds that for an invalid body.
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
