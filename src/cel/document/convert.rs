//! Converts a document to a `serde_json::Value`.

use serde_json::Value as Json;

use super::Node;

impl Node<'_> {
    /// The document as a `serde_json::Value`. A double that JSON cannot hold (NaN, an infinity) becomes null.
    #[must_use]
    pub fn to_json(&self) -> Json {
        match self {
            Self::Null => Json::Null,
            Self::Bool(b) => Json::Bool(*b),
            Self::Int(i) => Json::from(*i),
            Self::Double(d) => Json::from(*d),
            Self::String(s) => Json::from(*s),
            Self::List(items) => items.iter().map(|item| item.to_json()).collect(),
            Self::Map(map) => map.iter().map(|(name, node)| (name.to_owned(), node.to_json())).collect(),
        }
    }
}
