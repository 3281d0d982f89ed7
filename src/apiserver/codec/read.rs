//! Parses bytes to a value of any kind, within the memory limit for a body of its length.

use std::fmt;

use admit_policy::json::{self, JsonError};
use serde_json::Value;

use super::yaml;
use crate::builtin::protobuf::{self, ProtobufError};
use crate::builtin::tables;
use crate::status::Refusal;

/// The longest body that is read. As upstream: what etcd would take, twice over.
pub(crate) const MAX_BODY: usize = 3 << 20;

/// How a body is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Json,
    Yaml,
    Protobuf,
}

/// A body as it came.
#[derive(Clone, Debug)]
pub(crate) struct Body {
    pub format: Format,
    pub bytes: bytes::Bytes,
}

pub(super) const PARSE_ERROR: &str = "couldn't get version/kind; json parse error: ";

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
    /// It may be sound, and holds more than is taken.
    TooMuch(String),
}

impl Unread {
    /// The refusal of the body, which for a mistake `worded` makes.
    pub(crate) fn refusal(self, worded: impl FnOnce(String) -> Refusal) -> Refusal {
        match self {
            Self::Mistake(why) => worded(why),
            Self::TooMuch(why) => Refusal::too_large_because(format!("the body holds {why}")),
        }
    }
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mistake(why) | Self::TooMuch(why) => f.write_str(why),
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

/// Parses a body without interpreting it.
///
/// # Errors
/// The parser's text, with `json parse error: ` before it where Kubernetes has that.
pub(crate) fn parse(body: &Body) -> Result<Document, Unread> {
    match body.format {
        Format::Json => match json::parse(&body.bytes).map_err(Unread::from) {
            Ok(document) => {
                let duplicates = document.duplicates.paths().map(str::to_owned).collect();
                Ok(Document { value: document.value, duplicates })
            }
            Err(Unread::Mistake(why)) => Err(Unread::Mistake(format!("{PARSE_ERROR}{why}"))),
            Err(too_much) => Err(too_much),
        },
        Format::Yaml => yaml::parse(&body.bytes),
        Format::Protobuf => match protobuf::decode(tables(), &body.bytes) {
            Ok(value) => Ok(Document { value, duplicates: Vec::new() }),
            Err(ProtobufError::TooHeavy(limit)) => Err(Unread::TooMuch(limit.to_string())),
            Err(error) => Err(Unread::Mistake(error.to_string())),
        },
    }
}
