//! Parses bytes to a value of any kind, within the memory limit for a body of its length.

use admit_policy::json;

use super::document::{Document, Unread};
use super::yaml;
use crate::builtin::protobuf::{self, ProtobufError};
use crate::builtin::tables;

/// Most bytes of a body. As upstream: twice what etcd would accept.
pub(crate) const MAX_BODY: usize = 3 << 20;

/// The format of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Json,
    Yaml,
    Protobuf,
}

/// A body as received.
#[derive(Clone, Debug)]
pub(crate) struct Body {
    pub format: Format,
    pub bytes: bytes::Bytes,
}

pub(super) const PARSE_ERROR: &str = "couldn't get version/kind; json parse error: ";

/// Parses a body without decoding it as a kind.
///
/// # Errors
/// The parser's message, with `json parse error: ` before it where Kubernetes has that.
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
