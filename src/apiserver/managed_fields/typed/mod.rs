//! Implements operations on objects under a schema: validation, ownership, comparison, merging and removal of fields.
//!
//! All operations but [`Typing::problems`] expect values that fit the schema, apart from duplicate items; one that
//! does not is treated as a value without members.

mod atomics;
mod compare;
mod emptied;
mod item;
mod merge;
mod owned;
mod problems;
mod reconcile;
mod remove;

use serde_json::{Map, Value};

pub use compare::Comparison;
pub(crate) use compare::same;
pub use problems::{Duplicates, Problems};

use super::schema::{Schema, TypeId};

/// A schema and the type of an object in it.
#[derive(Clone, Copy, Debug)]
pub struct Typing<'s> {
    pub schema: &'s Schema,
    pub root: TypeId,
}

/// Returns the members of a map; None for anything else.
fn members(value: Option<&Value>) -> Option<&Map<String, Value>> {
    value.and_then(Value::as_object)
}

fn items(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Whether neither side is a map with members. Such values are compared as a whole: null differs from an empty map.
fn no_members(one: Option<&Value>, other: Option<&Value>) -> bool {
    [one, other].into_iter().all(|side| members(side).is_none_or(Map::is_empty))
}

/// Whether neither side is a list with items.
fn no_items(one: Option<&Value>, other: Option<&Value>) -> bool {
    items(one).is_empty() && items(other).is_empty()
}
