//! Matches equal items of sets and map lists in documents, so that comparing and joining them takes time linear in their number.

use std::collections::HashMap;

use bumpalo::Bump;

use super::{EvalError, List, Map, Value};

/// A scalar as Go compares two of them inside `interface{}`: type first, then value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Scalar<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    /// Bits; zeros of both signs are one.
    Double(u64),
    String(&'a str),
    Bytes(&'a [u8]),
    Duration(i64),
    Timestamp(i64, u32),
    /// Neither schema nor API server admits anything else as a member or key.
    Other,
}

/// What identifies an item: the item itself in a set, its key properties in a map list.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Identity<'a>(Vec<Scalar<'a>>);

impl<'a> Identity<'a> {
    /// Returns the identity of an item of a set, as in the document.
    ///
    /// # Errors
    ///
    /// For values that Go cannot hash, at which cel-go fails.
    pub(crate) fn of_member(item: &Value<'a>) -> Result<Self, EvalError> {
        let go_type = match item {
            Value::List(_) => "[]interface {}",
            Value::Map(_) => "map[string]interface {}",
            Value::Bytes(_) => "[]uint8",
            _ => return Ok(Self(vec![scalar(Some(*item))])),
        };
        Err(EvalError::Internal(format!("runtime error: hash of unhashable type {go_type}").into()))
    }

    /// The identity of an item of a map list with these keys; an absent key is one like any other.
    pub(crate) fn of_entry(keys: &[Box<str>], item: &Value<'a>) -> Self {
        let Value::Map(map) = item else { return Self(Vec::new()) };
        let part = |key: &str| match map {
            // By property name: keys are those of the schema, not the escaped names of expressions.
            Map::Document { node, .. } => scalar(node.get(key).map(Value::untyped)),
            _ => scalar(map.get(&Value::String(key))),
        };
        Self(keys.iter().map(|key| part(key)).collect())
    }
}

/// The positions of a list's items by identity; of several with one identity, the last.
pub(crate) fn positions<'a>(
    list: &List<'a>,
    arena: Option<&'a Bump>,
    identity: impl Fn(&Value<'a>) -> Result<Identity<'a>, EvalError>,
) -> Result<HashMap<Identity<'a>, usize>, EvalError> {
    let mut positions = HashMap::with_capacity(list.len());
    for at in 0..list.len() {
        if let Some(item) = list.item(arena, at)? {
            positions.insert(identity(&item)?, at);
        }
    }
    Ok(positions)
}

fn scalar(value: Option<Value<'_>>) -> Scalar<'_> {
    match value {
        None | Some(Value::Null) => Scalar::Null,
        Some(Value::Bool(b)) => Scalar::Bool(b),
        Some(Value::Int(i)) => Scalar::Int(i),
        Some(Value::Uint(u)) => Scalar::Uint(u),
        Some(Value::Double(d)) => Scalar::Double(if d == 0.0 { 0 } else { d.to_bits() }),
        Some(Value::String(s)) => Scalar::String(s),
        Some(Value::Bytes(b)) => Scalar::Bytes(b),
        Some(Value::Duration(d)) => Scalar::Duration(d.0),
        Some(Value::Timestamp(t)) => Scalar::Timestamp(t.seconds, t.nanos),
        Some(Value::List(_) | Value::Map(_) | Value::Type(_) | Value::Optional(_) | Value::Opaque(_)) => {
            Scalar::Other
        }
    }
}
