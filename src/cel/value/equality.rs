//! Implements `==`: within a type, across number types, and for documents as apiserver's `pkg/cel/common` does (sets and map lists
//! regardless of order, undeclared properties as JSON).

use std::cmp::Ordering;
use std::collections::HashSet;

use bumpalo::Bump;

use super::members::{Identity, positions};
use super::{EvalError, List, Map, MapNode, Node, Opaque, Value, compare_int_double, compare_uint_double};
use crate::types::{DeclField, DeclKind, DeclType, ListType, Type};

/// The arena for decoding parts of documents; without one they are compared by their JSON form.
type Arena<'a> = Option<&'a Bump>;

impl<'a> Value<'a> {
    /// Whether two values are equal; values that cannot be compared are not.
    #[must_use]
    pub fn equals(&self, other: &Value<'_>) -> bool {
        self.equal_in(None, other).unwrap_or(false)
    }

    /// Whether two values are equal. Values of different types are unequal, but for numbers.
    ///
    /// # Errors
    ///
    /// When a document's part is not of its declared type, and `no such overload` where the left is a document's list
    /// or object, or a value of Kubernetes' libraries, and the right is of another type.
    pub fn try_equals(&self, arena: &'a Bump, other: &Self) -> Result<bool, EvalError> {
        self.equal_in(Some(arena), other)
    }

    pub(super) fn equal_in(&self, arena: Arena<'a>, other: &Self) -> Result<bool, EvalError> {
        Ok(match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Null, _) | (_, Self::Null) => false,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Uint(a), Self::Uint(b)) => a == b,
            (Self::Double(a), Self::Double(b)) => a == b,
            (Self::Int(a), Self::Uint(b)) | (Self::Uint(b), Self::Int(a)) => u64::try_from(*a) == Ok(*b),
            (Self::Int(a), Self::Double(b)) | (Self::Double(b), Self::Int(a)) => {
                compare_int_double(*a, *b) == Some(Ordering::Equal)
            }
            (Self::Uint(a), Self::Double(b)) | (Self::Double(b), Self::Uint(a)) => {
                compare_uint_double(*a, *b) == Some(Ordering::Equal)
            }
            (Self::String(a), Self::String(b)) => a == b,
            (Self::Bytes(a), Self::Bytes(b)) => a == b,
            (Self::Duration(a), Self::Duration(b)) => a == b,
            (Self::Timestamp(a), Self::Timestamp(b)) => (a.seconds, a.nanos) == (b.seconds, b.nanos),
            (Self::List(a), Self::List(b)) => return lists(arena, a, b),
            (Self::Map(a), Self::Map(b)) => return maps(arena, a, b),
            (Self::Type(a), Self::Type(b)) => same_type(a, b),
            (Self::Optional(a), Self::Optional(b)) => match (a, b) {
                (Some(a), Some(b)) => return a.equal_in(arena, b),
                (a, b) => a.is_none() && b.is_none(),
            },
            (Self::Opaque(Opaque::Made(a)), Self::Opaque(Opaque::Made(b))) => return a.is(b),
            (Self::Opaque(Opaque::Made(_)), _) => false,
            (Self::Opaque(Opaque::Empty), other) => matches!(other, Self::Opaque(Opaque::Empty)),
            (Self::Opaque(a), Self::Opaque(b)) => return opaques(a, b),
            (Self::Opaque(_), _) => return Err(EvalError::NoSuchOverload),
            (part, _) if part.is_declared() => return Err(EvalError::NoSuchOverload),
            _ => false,
        })
    }

    /// Whether this is a document's list or object with a declared type.
    const fn is_declared(&self) -> bool {
        matches!(
            self,
            Self::List(List::Document { decl: Some(_), .. }) | Self::Map(Map::Document { decl: Some(_), .. })
        )
    }
}

impl<'a> List<'a> {
    /// Whether an item equals the value, as for `in`.
    ///
    /// # Errors
    /// For a list whose items have a declared type, that one of them cannot be compared and no other is the one; for others, errors
    /// that end the evaluation alone.
    pub(crate) fn holds(&self, arena: &'a Bump, value: &Value<'a>) -> Result<bool, EvalError> {
        match (value, self) {
            (_, Self::Document { decl: Some(_), .. }) => holds_declared(arena, self, value),
            (Value::String(text), Self::Document { items, decl: None }) => {
                Ok(items.iter().any(|other| matches!(other, Node::String(other) if other == *text)))
            }
            _ => {
                for other in self.iter() {
                    match value.try_equals(arena, &other) {
                        Ok(true) => return Ok(true),
                        Err(error) if error.is_final() => return Err(error),
                        Ok(false) | Err(_) => {}
                    }
                }
                Ok(false)
            }
        }
    }
}

fn holds_declared<'a>(arena: &'a Bump, list: &List<'a>, value: &Value<'a>) -> Result<bool, EvalError> {
    let mut failed = None;
    for at in 0..list.len() {
        let found = match list.try_get(arena, at) {
            Ok(Some(item)) => part_equals(Some(arena), true, &item, value),
            Ok(None) => break,
            Err(error) => Err(error),
        };
        match found {
            Ok(true) => return Ok(true),
            Ok(false) => {}
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    failed.map_or(Ok(false), Err)
}

/// Compares a part of a list or map with a value. One of a declared type does not ask first, as `==` does, whether either is null: a
/// list or an object in it does not compare with null.
fn part_equals<'a>(
    arena: Arena<'a>,
    of_declared: bool,
    part: &Value<'a>,
    other: &Value<'a>,
) -> Result<bool, EvalError> {
    if of_declared && matches!(other, Value::Null) && part.is_declared() {
        return Err(EvalError::NoSuchOverload);
    }
    part.equal_in(arena, other)
}

fn lists<'a>(arena: Arena<'a>, a: &List<'a>, b: &List<'a>) -> Result<bool, EvalError> {
    if a.len() != b.len() {
        return Ok(false);
    }
    if let (List::Document { items: x, decl: None }, List::Document { items: y, decl: None }) = (a, b) {
        return Ok(x.iter().zip(y.iter()).all(|(x, y)| nodes(&x, &y)));
    }
    match a.list_type() {
        ListType::Set => contains_all(arena, a, b),
        ListType::Map(keys) => entries_match(arena, keys, a, b),
        ListType::Atomic => {
            let of_declared = matches!(a, List::Document { decl: Some(_), .. });
            for at in 0..a.len() {
                let (Some(x), Some(y)) = (a.item(arena, at)?, of_right(b, arena, at)?) else {
                    return Ok(false);
                };
                if !part_equals(arena, of_declared, &x, &y)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
    }
}

/// Compares sets: every item of the right is one of the left, as written: 1 is not 1.0, and a string is no timestamp.
fn contains_all<'a>(arena: Arena<'a>, a: &List<'a>, b: &List<'a>) -> Result<bool, EvalError> {
    let mut members = HashSet::with_capacity(a.len());
    for item in (0..a.len()).filter_map(|at| a.written(at)) {
        members.insert(Identity::of_member(&item)?);
    }
    for at in 0..b.len() {
        match of_right(b, arena, at)? {
            Some(item) if members.contains(&Identity::of_member(&item)?) => {}
            _ => return Ok(false),
        }
    }
    Ok(true)
}

/// Returns an item of the right side; one that does not have its declared type equals nothing.
fn of_right<'a>(list: &List<'a>, arena: Arena<'a>, at: usize) -> Result<Option<Value<'a>>, EvalError> {
    list.item(arena, at).or_else(|error| if error.is_final() { Err(error) } else { Ok(None) })
}

/// Map lists: every item of the right equals the one of the left with the same keys.
fn entries_match<'a>(
    arena: Arena<'a>,
    keys: &[Box<str>],
    a: &List<'a>,
    b: &List<'a>,
) -> Result<bool, EvalError> {
    let entries = positions(a, arena, |item| Ok(Identity::of_entry(keys, item)))?;
    for at in 0..b.len() {
        let Some(item) = b.item(arena, at)? else { return Ok(false) };
        let Some(at) = entries.get(&Identity::of_entry(keys, &item)) else { return Ok(false) };
        let Some(counterpart) = a.item(arena, *at)? else { return Ok(false) };
        if !counterpart.equal_in(arena, &item)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn maps<'a>(arena: Arena<'a>, a: &Map<'a>, b: &Map<'a>) -> Result<bool, EvalError> {
    match (a, b) {
        // The caller's own maps may hold themselves: one is equal to itself, and compares with nothing else.
        (Map::Host(a), Map::Host(b)) => return Ok(std::ptr::addr_eq(*a, *b)),
        (Map::Host(_), _) => return Err(EvalError::NoSuchOverload),
        _ => {}
    }
    if a.len() != b.len() {
        return Ok(false);
    }
    match (a, b) {
        (Map::Document { node: x, decl: None }, Map::Document { node: y, decl: None }) => Ok(objects(*x, *y)),
        (Map::Document { node, decl: Some(DeclType { kind: DeclKind::Object { fields, .. }, .. }) }, _) => {
            declared_objects(arena, *node, fields, b)
        }
        _ => {
            let of_declared = matches!(a, Map::Document { decl: Some(_), .. });
            for entry in a.entries(arena) {
                let (key, value) = entry?;
                let Some(counterpart) = b.find(arena, &key)? else { return Ok(false) };
                if !part_equals(arena, of_declared, &value, &counterpart)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
    }
}

/// Objects of a declared type: declared fields through their types, anything else as JSON.
fn declared_objects<'a>(
    arena: Arena<'a>,
    node: MapNode<'a>,
    fields: &'a [DeclField],
    other: &Map<'a>,
) -> Result<bool, EvalError> {
    for (name, value) in node.iter() {
        let Some(field) = fields.iter().find(|field| *field.name == *name) else {
            let Map::Document { node: other, .. } = other else { return Err(EvalError::NoSuchOverload) };
            if other.get(name).is_some_and(|counterpart| !nodes(&value, &counterpart)) {
                return Ok(false);
            }
            continue;
        };
        let mine = super::map::object_field(arena, node, crate::document::Key::new(name), &field.decl)?;
        let equal = match (mine, other.find(arena, &Value::String(&field.cel_name))?) {
            (Some(mine), Some(theirs)) => part_equals(arena, true, &mine, &theirs)?,
            (mine, theirs) => mine.is_none() && theirs.is_none(),
        };
        if !equal {
            return Ok(false);
        }
    }
    Ok(true)
}

fn objects(a: MapNode<'_>, b: MapNode<'_>) -> bool {
    a.len() == b.len() && a.iter().all(|(name, x)| b.get(name).is_some_and(|y| nodes(&x, &y)))
}

/// Equality of JSON: an integer and a double of equal value are equal.
pub(crate) fn nodes(a: &Node<'_>, b: &Node<'_>) -> bool {
    match (a, b) {
        (Node::Null, Node::Null) => true,
        (Node::Bool(a), Node::Bool(b)) => a == b,
        (Node::Int(a), Node::Int(b)) => a == b,
        (Node::Double(a), Node::Double(b)) => a == b,
        (Node::Int(a), Node::Double(b)) | (Node::Double(b), Node::Int(a)) => {
            compare_int_double(*a, *b) == Some(Ordering::Equal)
        }
        (Node::String(a), Node::String(b)) => a == b,
        (Node::List(a), Node::List(b)) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| nodes(&a, &b))
        }
        (Node::Map(a), Node::Map(b)) => objects(*a, *b),
        _ => false,
    }
}

fn opaques(a: &Opaque<'_>, b: &Opaque<'_>) -> Result<bool, EvalError> {
    match (a, b) {
        (Opaque::Ip(a), Opaque::Ip(b)) => Ok(a == b),
        (Opaque::Cidr(a, m), Opaque::Cidr(b, n)) => Ok((a, m) == (b, n)),
        (Opaque::Quantity(_), Opaque::Quantity(b)) if b.computed => Err(EvalError::NoSuchOverload),
        (Opaque::Quantity(a), Opaque::Quantity(b)) => Ok(a == b),
        (Opaque::Url(a), Opaque::Url(b)) => Ok(a == b),
        (Opaque::Semver(a), Opaque::Semver(b)) => Ok(a == b),
        (Opaque::Format(a), Opaque::Format(b)) => Ok(a == b),
        _ => Err(EvalError::NoSuchOverload),
    }
}

/// Compares type values without their parameters: at run time there is one type of lists.
fn same_type(a: &Type, b: &Type) -> bool {
    match (a, b) {
        (Type::Opaque(a), Type::Opaque(b)) => a == b,
        (Type::Abstract(a), Type::Abstract(b)) => a.name == b.name,
        (Type::Object(_), Type::Map(..)) | (Type::Map(..), Type::Object(_)) => true,
        _ => std::mem::discriminant(a) == std::mem::discriminant(b),
    }
}
