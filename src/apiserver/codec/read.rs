//! Parses bytes to a value of any kind, within the memory limit for a body of its length.

use admit_policy::json;

use super::document::{Document, Unread};
use super::yaml;
use crate::builtin::protobuf::{self, ProtobufError};
use crate::builtin::tables;

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
