//! A view of a `serde_json::Value` as a [`Node`]: strings are borrowed, lists and objects are laid out in the arena.

use bumpalo::Bump;
use bumpalo::collections::Vec as ArenaVec;
use serde_json::Value as Json;

use super::{Key, MapNode, Node};

impl<'a> Node<'a> {
    /// The document that `json` holds. Recursion is as deep as `json`, whose reader bounds it.
    #[must_use]
    pub fn from_json(arena: &'a Bump, json: &'a Json) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(b) => Self::Bool(*b),
            Json::Number(number) => number
                .as_i64()
                .map_or_else(|| number.as_f64().map_or(Self::Double(f64::NAN), Self::Double), Self::Int),
            Json::String(text) => Self::String(text),
            Json::Array(items) => {
                Self::List(arena.alloc_slice_fill_iter(items.iter().map(|item| Self::from_json(arena, item))))
            }
            Json::Object(members) => {
                let mut entries = ArenaVec::with_capacity_in(members.len(), arena);
                for (name, value) in members {
                    entries.push((Key::new(name), Self::from_json(arena, value)));
                }
                Self::Map(arena.alloc(MapNode::new(arena, entries.into_bump_slice())))
            }
        }
    }

    /// The document as a `serde_json::Value`. A double that JSON cannot hold (NaN, an infinity) becomes null.
    #[must_use]
    pub fn to_json(&self) -> Json {
        match self {
            Self::Null => Json::Null,
            Self::Bool(b) => Json::Bool(*b),
            Self::Int(i) => Json::from(*i),
            Self::Double(d) => Json::from(*d),
            Self::String(s) => Json::from(*s),
            Self::List(items) => items.iter().map(Node::to_json).collect(),
            Self::Map(map) => map.iter().map(|(name, node)| (name.to_owned(), node.to_json())).collect(),
        }
    }
}
