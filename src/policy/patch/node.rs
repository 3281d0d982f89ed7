//! Represents a value while it is patched: containers that operations reach into are opened once, everything else is left unparsed.
//!
//! ```text
//! Closed ──(an operation leads through it)──► Object, in order of name │ List, in parts ──(at the end)──► Value
//! ```
//!
//! So the cost of an operation depends on its path and its value, not on the size of the objects on the way.
//! Upstream's library opens containers in the same way, which is why the members of those that were opened come out
//! sorted.

use std::collections::BTreeMap;
use std::io;

use serde_json::Value;

use super::list::List;

/// The height of a scalar is 0, that of a container 1 more than of its content. Open containers keep an upper bound, which grows with
/// insertions.
#[derive(Debug)]
pub(super) enum Node {
    Closed(Value),
    /// A closed container with its computed height.
    Measured(usize, Box<Value>),
    Object(usize, BTreeMap<String, Self>),
    List(usize, List<Self>),
}

impl Node {
    /// The value, with the members of opened objects in order of name.
    pub(super) fn into_value(self) -> Value {
        match self {
            Self::Closed(value) => value,
            Self::Measured(_, value) => *value,
            Self::Object(_, members) => {
                Value::Object(members.into_iter().map(|(name, node)| (name, node.into_value())).collect())
            }
            Self::List(_, items) => Value::Array(items.into_iter().map(Self::into_value).collect()),
        }
    }

    /// Sorts the members of all objects in it by name, as opening them does.
    pub(super) fn sort(&mut self) {
        match self {
            Self::Closed(value) => value.sort_all_objects(),
            Self::Measured(_, value) => value.sort_all_objects(),
            Self::Object(_, members) => members.values_mut().for_each(Self::sort),
            Self::List(_, items) => items.iter_mut().for_each(Self::sort),
        }
    }

    pub(super) fn to_value(&self) -> Value {
        match self {
            Self::Closed(value) => value.clone(),
            Self::Measured(_, value) => Value::clone(value),
            Self::Object(_, members) => {
                Value::Object(members.iter().map(|(name, node)| (name.clone(), node.to_value())).collect())
            }
            Self::List(_, items) => Value::Array(items.iter().map(Self::to_value).collect()),
        }
    }

    pub(super) fn is(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Closed(own), _) => own == value,
            (Self::Measured(_, own), _) => **own == *value,
            (Self::Object(_, own), Value::Object(members)) => {
                own.len() == members.len()
                    && own.iter().all(|(name, node)| members.get(name).is_some_and(|value| node.is(value)))
            }
            (Self::List(_, own), Value::Array(items)) => {
                own.len() == items.len() && own.iter().zip(items).all(|(node, value)| node.is(value))
            }
            (Self::Object(..) | Self::List(..), _) => false,
        }
    }

    /// The bytes of the value as compact JSON, as Go writes it.
    pub(super) fn text_len(&self) -> usize {
        // Brackets and separators: a colon per member, commas between all.
        let around = |count: usize| count.saturating_add(1).max(2);
        match self {
            Self::Closed(value) => text_len(value),
            Self::Measured(_, value) => text_len(value),
            Self::Object(_, members) => {
                let name = |name| counted(|count| serde_json::to_writer(count, name)).saturating_add(1);
                let member = |(key, node): (_, &Self)| name(key).saturating_add(node.text_len());
                members.iter().map(member).fold(around(members.len()), usize::saturating_add)
            }
            Self::List(_, items) => {
                items.iter().map(Self::text_len).fold(around(items.len()), usize::saturating_add)
            }
        }
    }

    /// The node with its content within reach; scalars have none. What holds it knows that it is no deeper than `most`.
    pub(super) fn opened(&mut self, most: usize) -> &mut Self {
        let (height, value) = match std::mem::replace(self, Self::Closed(Value::Null)) {
            Self::Closed(value) => (most, value),
            Self::Measured(height, value) => (height, *value),
            open => {
                *self = open;
                return self;
            }
        };
        *self = match value {
            Value::Object(members) => {
                let members = members.into_iter().map(|(name, value)| (name, Self::Closed(value)));
                Self::Object(height, members.collect())
            }
            Value::Array(items) => Self::List(height, items.into_iter().map(Self::Closed).collect()),
            scalar => Self::Closed(scalar),
        };
        self
    }

    /// Returns an upper bound of the node's height: `most`, which its container knows, if that is at most `enough`; otherwise the exact
    /// height, which is computed once.
    pub(super) fn height(&mut self, most: usize, enough: usize) -> usize {
        match self {
            Self::Closed(value @ (Value::Array(_) | Value::Object(_))) if most > enough => {
                let height = height_of(value);
                *self = Self::Measured(height, Box::new(value.take()));
                height
            }
            Self::Closed(Value::Array(_) | Value::Object(_)) => most,
            Self::Closed(_) => 0,
            Self::Measured(height, _) | Self::Object(height, _) | Self::List(height, _) => *height,
        }
    }

    /// Something of the height `inner`, if anything, is put into the open container.
    pub(super) fn hold(&mut self, inner: Option<usize>) {
        if let (Self::Object(height, _) | Self::List(height, _), Some(inner)) = (self, inner) {
            *height = (*height).max(inner.saturating_add(1));
        }
    }
}

fn height_of(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(height_of).max().unwrap_or_default().saturating_add(1),
        Value::Object(members) => members.values().map(height_of).max().unwrap_or_default().saturating_add(1),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// The bytes of a value as compact JSON, as Go writes it.
pub(super) fn text_len(value: &Value) -> usize {
    counted(|count| serde_json::to_writer(count, value))
}

fn counted(write: impl FnOnce(&mut Counted) -> serde_json::Result<()>) -> usize {
    let mut counted = Counted(0);
    // Counting does not fail, and the keys of a value are strings.
    let _ = write(&mut counted);
    counted.0
}

/// Counts written bytes; the three characters that Go escapes (`\u003c`) count with that length.
struct Counted(usize);

impl io::Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let escaped = bytes.iter().filter(|byte| matches!(byte, b'<' | b'>' | b'&')).count();
        self.0 = self.0.saturating_add(bytes.len()).saturating_add(escaped.saturating_mul(5));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
