//! Represents the claims of a token: a single claim as Go decodes it, and all of them as expressions see them. Users are represented in
//! the same way.
//!
//! Expressions see every number as a double, and also find a name in its escaped form (`claims.kubernetes__dot__io`).

use admit_apimachinery::go;
use admit_cel::{EvalError, HostMap, List, Map, Node, Value, escape_property, unescape_property};
use bumpalo::Bump;
use serde_json::{Map as JsonMap, Number, Value as Json};
use thiserror::Error;

/// Why a claim does not have the required type, in Go's words.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum ClaimError {
    #[error("claim not present")]
    Missing,
    #[error("json: cannot unmarshal {found} into Go value of type {wanted}")]
    Type { found: &'static str, wanted: &'static str },
}

/// Returns a string claim; empty for null.
pub(super) fn text(claims: &JsonMap<String, Json>, name: &str) -> Result<String, ClaimError> {
    as_text(claims.get(name).ok_or(ClaimError::Missing)?)
}

/// The truth value of a claim; false for null.
pub(super) fn truth(claims: &JsonMap<String, Json>, name: &str) -> Result<bool, ClaimError> {
    match claims.get(name).ok_or(ClaimError::Missing)? {
        Json::Bool(truth) => Ok(*truth),
        Json::Null => Ok(false),
        other => Err(mistyped(other, "bool")),
    }
}

/// Returns the strings of a claim that is a string or a list of strings; empty for null.
pub(super) fn texts(claim: &Json) -> Result<Vec<String>, ClaimError> {
    match claim {
        Json::Null => Ok(Vec::new()),
        Json::Array(items) => match items.iter().map(as_text).collect() {
            Ok(texts) => Ok(texts),
            // As in Go, the error is that of the attempt to read a string.
            Err(_) => Err(mistyped(claim, "string")),
        },
        other => as_text(other).map(|text| vec![text]),
    }
}

fn as_text(value: &Json) -> Result<String, ClaimError> {
    match value {
        Json::String(text) => Ok(text.clone()),
        Json::Null => Ok(String::new()),
        other => Err(mistyped(other, "string")),
    }
}

fn mistyped(value: &Json, wanted: &'static str) -> ClaimError {
    ClaimError::Type { found: go::json::kind(value), wanted }
}

/// Claims as expressions see them.
#[derive(Debug)]
pub(super) struct Claims {
    claims: Json,
    shape: Shape,
}

/// Describes the object members in a value whose names differ in expressions.
#[derive(Debug)]
enum Shape {
    /// No name in it differs.
    Plain,
    List(Vec<Self>),
    Object {
        names: Box<[Box<str>]>,
        members: Vec<Self>,
    },
}

impl Claims {
    pub(super) fn new(claims: &JsonMap<String, Json>) -> Self {
        let claims =
            Json::Object(claims.iter().map(|(name, claim)| (name.clone(), doubles(claim))).collect());
        // The whole is always looked at by name.
        let shape = match &claims {
            Json::Object(members) => Shape::of_members(members),
            _ => Shape::Plain,
        };
        Self { claims, shape }
    }

    /// The value of the variable `claims`.
    pub(super) fn value<'a>(&'a self, arena: &'a Bump) -> Value<'a> {
        value(arena, &self.claims, &self.shape, true)
    }
}

/// Converts every number to a double, as Go decodes untyped JSON.
fn doubles(value: &Json) -> Json {
    match value {
        Json::Number(number) => number.as_f64().and_then(Number::from_f64).map_or(Json::Null, Json::Number),
        Json::Array(items) => Json::Array(items.iter().map(doubles).collect()),
        Json::Object(members) => {
            Json::Object(members.iter().map(|(name, member)| (name.clone(), doubles(member))).collect())
        }
        Json::Null | Json::Bool(_) | Json::String(_) => value.clone(),
    }
}

impl Shape {
    fn of(value: &Json) -> Self {
        match value {
            Json::Array(items) => {
                let shapes: Vec<Self> = items.iter().map(Self::of).collect();
                if shapes.iter().all(Self::is_plain) { Self::Plain } else { Self::List(shapes) }
            }
            Json::Object(members) => match Self::of_members(members) {
                Self::Object { names, members }
                    if members.iter().all(Self::is_plain) && !names.iter().any(|name| has_another(name)) =>
                {
                    Self::Plain
                }
                shape => shape,
            },
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => Self::Plain,
        }
    }

    fn of_members(members: &JsonMap<String, Json>) -> Self {
        Self::Object {
            names: members.keys().map(|name| name.as_str().into()).collect(),
            members: members.values().map(Self::of).collect(),
        }
    }

    const fn is_plain(&self) -> bool {
        matches!(self, Self::Plain)
    }
}

/// Whether expressions have another name for it.
fn has_another(name: &str) -> bool {
    escape_property(name).is_some_and(|escaped| escaped != name)
}

fn value<'a>(arena: &'a Bump, json: &'a Json, shape: &'a Shape, is_root: bool) -> Value<'a> {
    match (json, shape) {
        (Json::Array(items), Shape::List(shapes)) => {
            let values = items.iter().zip(shapes).map(|(item, shape)| value(arena, item, shape, false));
            let values: Vec<Value<'a>> = values.collect();
            Value::List(List::Values(arena.alloc_slice_copy(&values)))
        }
        (Json::Object(members), Shape::Object { names, members: shapes }) => {
            let named = members.iter().zip(shapes);
            let mut members: Vec<(&'a str, Value<'a>)> = named
                .map(|((name, json), shape)| (name.as_str(), value(arena, json, shape, false)))
                .collect();
            members.sort_by_key(|(name, _)| *name);
            let members = arena.alloc_slice_copy(&members);
            Value::Map(Map::Host(arena.alloc(Object { names, members, is_root })))
        }
        _ => Value::untyped(Node::from_json(json)),
    }
}

/// An object whose members are found by their escaped names as well.
#[derive(Debug)]
struct Object<'a> {
    names: &'a [Box<str>],
    /// The members, by name.
    members: &'a [(&'a str, Value<'a>)],
    /// At the root, a name with a meaningless escape does not exist; below it is an ordinary name.
    is_root: bool,
}

impl HostMap for Object<'_> {
    fn find<'b>(&'b self, name: &str) -> Option<Result<Value<'b>, EvalError>> {
        let meant = match unescape_property(name) {
            Some(meant) => meant,
            None if self.is_root => return None,
            None => name.to_owned(),
        };
        let found = self.members.binary_search_by(|(known, _)| (*known).cmp(meant.as_str())).ok()?;
        self.members.get(found).map(|(_, value)| Ok(*value))
    }

    fn names(&self) -> &[Box<str>] {
        self.names
    }

    /// `in` knows no escaped names below the claims themselves.
    fn holds(&self, name: &str) -> Result<bool, EvalError> {
        let is_member = || self.members.binary_search_by(|(known, _)| (*known).cmp(name)).is_ok();
        Ok(if self.is_root { self.find(name).is_some() } else { is_member() })
    }
}
