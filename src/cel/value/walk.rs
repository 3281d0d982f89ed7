//! Iterates over the entries of a map in any representation.

use std::slice;

use bumpalo::Bump;

use super::map::declared_name;
use super::{Constant, EvalError, HostMap, Map, Node, Value};
use crate::document::Entries;
use crate::types::DeclType;

/// Walks over the entries of a map; of an object of a declared type over the declared fields that are present.
#[derive(Clone, Debug)]
pub(crate) enum Walk<'a> {
    Values(slice::Iter<'a, (Value<'a>, Value<'a>)>),
    Constant(slice::Iter<'a, (Constant, Constant)>),
    Document(Entries<'a>, Option<&'a DeclType>),
    Host(&'a dyn HostMap, slice::Iter<'a, Box<str>>),
}

/// An entry whose value has not been looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Entry<'a> {
    Values(&'a (Value<'a>, Value<'a>)),
    Constant(&'a (Constant, Constant)),
    /// The name in expressions, the value, and its type.
    Document(&'a str, Node<'a>, Option<&'a DeclType>),
    Host(&'a dyn HostMap, &'a str),
}

impl<'a> Map<'a> {
    /// The entries, values not looked at.
    pub(crate) fn walk(self) -> Walk<'a> {
        match self {
            Self::Values(entries) => Walk::Values(entries.iter()),
            Self::Indexed(indexed) => Walk::Values(indexed.entries().iter()),
            Self::Constant(constant) => Walk::Constant(constant.entries.iter()),
            Self::Document { node, decl } => Walk::Document(node.iter(), decl),
            Self::Host(host) => Walk::Host(host, host.names().iter()),
        }
    }

    /// Keys and values.
    ///
    /// # Errors
    ///
    /// As [`Self::try_get`].
    pub(crate) fn entries(
        self,
        arena: Option<&'a Bump>,
    ) -> impl Iterator<Item = Result<(Value<'a>, Value<'a>), EvalError>> + Clone {
        self.walk()
            .filter_map(move |entry| entry.value(arena).map(|value| Some((entry.key(), value?))).transpose())
    }
}

impl<'a> Iterator for Walk<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        match self {
            Self::Values(entries) => entries.next().map(Entry::Values),
            Self::Constant(entries) => entries.next().map(Entry::Constant),
            Self::Document(entries, decl) => entries.find_map(|(name, node)| {
                declared_name(name, *decl).map(|(name, decl)| Entry::Document(name, node, decl))
            }),
            Self::Host(host, names) => names.next().map(|name| Entry::Host(*host, name)),
        }
    }
}

impl<'a> Entry<'a> {
    pub(crate) fn key(&self) -> Value<'a> {
        match self {
            Self::Values((key, _)) => *key,
            Self::Constant((key, _)) => key.value(),
            Self::Document(name, ..) | Self::Host(_, name) => Value::String(name),
        }
    }

    /// The value, where it needs no looking up.
    pub(crate) fn made(&self) -> Option<Value<'a>> {
        match self {
            Self::Values((_, value)) => Some(*value),
            Self::Constant((_, value)) => Some(value.value()),
            Self::Document(..) | Self::Host(..) => None,
        }
    }

    fn value(&self, arena: Option<&'a Bump>) -> Result<Option<Value<'a>>, EvalError> {
        match self {
            Self::Values((_, value)) => Ok(Some(*value)),
            Self::Constant((_, value)) => Ok(Some(value.value())),
            Self::Document(_, node, decl) => Value::from_node_in(arena, *node, *decl).map(Some),
            Self::Host(host, name) => host.find(name).transpose(),
        }
    }
}
