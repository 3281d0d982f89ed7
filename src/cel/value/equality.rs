//! Implements `==`: within a type, across number types, and for documents as apiserver's `pkg/cel/common` does (sets and map lists
//! regardless of order, undeclared properties as JSON).

use std::cmp::Ordering;
use std::collections::HashSet;

use bumpalo::Bump;

use super::held::conversion_error;
use super::members::{Identity, positions};
use super::written::{are_written_alike, nodes, objects};
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
                (Some(a), Some(b)) => return part_equals(arena, true, a, b),
                (a, b) => a.is_none() && b.is_none(),
            },
            (Self::Opaque(Opaque::Lost(lost)), _) | (_, Self::Opaque(Opaque::Lost(lost))) => {
                return Err(conversion_error(lost));
            }
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
    pub(crate) const fn is_declared(&self) -> bool {
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

/// Compares a part of a list or map with a value, as the reference's lists and maps do: those of a declared type do not ask first, as
/// `==` does, whether either is null, so that a list or an object in them does not compare with null; for all others, parts that
/// cannot be compared are equal.
fn part_equals<'a>(
    arena: Arena<'a>,
    of_declared: bool,
    part: &Value<'a>,
    other: &Value<'a>,
) -> Result<bool, EvalError> {
    if of_declared && matches!(other, Value::Null) && part.is_declared() {
        return Err(EvalError::NoSuchOverload);
    }
    match part.equal_in(arena, other) {
        Err(error) if !of_declared && !error.is_final() => Ok(true),
        found => found,
    }
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
        (Map::Document { node, decl: None }, Map::Document { node: other, decl: Some(decl) }) => {
            plain_objects(arena, *node, *other, decl)
        }
        _ => {
            let of_declared = matches!(a, Map::Document { decl: Some(_), .. });
            all_equal(a.entries(arena).map(|entry| {
                let (key, value) = entry?;
                let Some(counterpart) = b.find(arena, &key)? else { return Ok(false) };
                part_equals(arena, of_declared, &value, &counterpart)
            }))
        }
    }
}

/// Whether all parts of a map are equal. The reference walks maps in any order; here a part that differs is found before one that cannot
/// be compared.
fn all_equal(parts: impl Iterator<Item = Result<bool, EvalError>>) -> Result<bool, EvalError> {
    let mut failed = None;
    for part in parts {
        match part {
            Ok(true) => {}
            Err(error) if !error.is_final() => failed = failed.or(Some(error)),
            other => return other,
        }
    }
    failed.map_or(Ok(true), Err)
}

/// Objects of a declared type: declared fields through their types, anything else as it is written.
fn declared_objects<'a>(
    arena: Arena<'a>,
    node: MapNode<'a>,
    fields: &'a [DeclField],
    other: &Map<'a>,
) -> Result<bool, EvalError> {
    all_equal(node.iter().map(|(name, value)| {
        let Some(field) = fields.iter().find(|field| *field.name == *name) else {
            // What is undeclared compares with the same of another object of the type alone.
            let Map::Document { node: other, decl: Some(_) } = other else {
                return Err(EvalError::NoSuchOverload);
            };
            return Ok(other.get(name).is_none_or(|counterpart| are_written_alike(&value, &counterpart)));
        };
        let mine = super::map::object_field(arena, node, crate::document::Key::new(name), &field.decl)?;
        let theirs = match other {
            Map::Document { node, decl: None } => node.get(name).map(Value::untyped),
            _ => other.find(arena, &Value::String(&field.cel_name))?,
        };
        match (mine, theirs) {
            (Some(mine), Some(theirs)) => part_equals(arena, true, &mine, &theirs),
            (mine, theirs) => Ok(mine.is_none() && theirs.is_none()),
        }
    }))
}

/// Compares plain JSON with an object or map of a declared type, whose fields are found under their own names too. What fails is
/// unequal.
fn plain_objects<'a>(
    arena: Arena<'a>,
    node: MapNode<'a>,
    other: MapNode<'a>,
    decl: &'a DeclType,
) -> Result<bool, EvalError> {
    all_equal(node.iter().map(|(name, value)| {
        let value = Value::untyped(value);
        let theirs = match &decl.kind {
            DeclKind::Object { fields, .. } => {
                let Some(field) = fields.iter().find(|field| *field.name == *name) else { return Ok(false) };
                super::map::object_field(arena, other, crate::document::Key::new(name), &field.decl)
            }
            _ => Map::Document { node: other, decl: Some(decl) }.find(arena, &Value::String(name)),
        };
        let found = theirs.and_then(|theirs| match theirs {
            Some(theirs) => value.equal_in(arena, &theirs),
            None => Ok(false),
        });
        found.or_else(|error| if error.is_final() { Err(error) } else { Ok(false) })
    }))
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
