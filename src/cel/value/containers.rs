//! Reading lists and maps, whatever they are made of, and equality as `==` has it.

use super::{List, Map, Node, Value};
use crate::types::DeclType;

impl<'a> List<'a> {
    #[must_use]
    pub const fn len(&self) -> usize {
        match self {
            Self::Values(items) => items.len(),
            Self::Document { items, .. } => items.len(),
        }
    }

    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[must_use]
    pub fn get(&self, index: usize) -> Option<Value<'a>> {
        match self {
            Self::Values(items) => items.get(index).copied(),
            Self::Document { items, .. } => items.get(index).map(|item| Value::from_node(item, None)),
        }
    }

    pub fn iter(self) -> impl Iterator<Item = Value<'a>> {
        (0..self.len()).filter_map(move |index| self.get(index))
    }
}

impl<'a> Map<'a> {
    #[must_use]
    pub const fn len(&self) -> usize {
        match self {
            Self::Values(entries) => entries.len(),
            Self::Document { node, .. } => node.entries.len(),
        }
    }

    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a key; keys that are equal numbers of different types are one key.
    #[must_use]
    pub fn get(&self, key: &Value<'_>) -> Option<Value<'a>> {
        self.iter().find(|(k, _)| k.equals(key)).map(|(_, value)| value)
    }

    pub fn iter(self) -> impl Iterator<Item = (Value<'a>, Value<'a>)> {
        (0..self.len()).filter_map(move |index| match self {
            Self::Values(entries) => entries.get(index).copied(),
            Self::Document { node, .. } => node
                .entries
                .get(index)
                .map(|(name, node)| (Value::String(name), Value::from_node(node, None))),
        })
    }
}

impl<'a> Value<'a> {
    /// A node seen through its declared type.
    #[must_use]
    pub fn from_node(node: &Node<'a>, decl: Option<&'a DeclType>) -> Self {
        match *node {
            Node::Null => Self::Null,
            Node::Bool(b) => Self::Bool(b),
            Node::Int(i) => Self::Int(i),
            Node::Double(d) => Self::Double(d),
            Node::String(s) => Self::String(s),
            Node::List(items) => Self::List(List::Document { items, decl }),
            Node::Map(node) => Self::Map(Map::Document { node, decl }),
        }
    }

    /// Whether two values are equal: numbers by value across their types, containers by their items.
    #[must_use]
    pub fn equals(&self, other: &Value<'_>) -> bool {
        match (self, other) {
            (Self::Null, Value::Null) => true,
            (Self::Bool(x), Value::Bool(y)) => x == y,
            (Self::String(x), Value::String(y)) => x == y,
            (Self::Bytes(x), Value::Bytes(y)) => x == y,
            (Self::Duration(x), Value::Duration(y)) => x == y,
            (Self::Timestamp(x), Value::Timestamp(y)) => (x.seconds, x.nanos) == (y.seconds, y.nanos),
            (Self::List(x), Value::List(y)) => {
                x.len() == y.len() && x.iter().zip(y.iter()).all(|(x, y)| x.equals(&y))
            }
            (Self::Map(x), Value::Map(y)) => {
                x.len() == y.len()
                    && x.iter().all(|(key, value)| y.get(&key).is_some_and(|other| value.equals(&other)))
            }
            (Self::Optional(x), Value::Optional(y)) => match (x, y) {
                (None, None) => true,
                (Some(x), Some(y)) => x.equals(y),
                _ => false,
            },
            (x, y) => crate::library::ordering::compare_numbers(x, y) == Some(std::cmp::Ordering::Equal),
        }
    }
}
