//! Determines the identity of list items: their key fields in map lists, their value in sets.

use admit_apimachinery::go::quote::quote_all;
use serde_json::Value;

use super::super::path::{Element, Scalar};
use super::super::schema::{List, ListRelation, Schema};
use crate::interrupt;

/// Why an item cannot be identified, in the words of structured-merge-diff.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ItemError {
    #[error("associative list without keys has an element that's a map type")]
    MapInSet,
    #[error("not supported: associative list with lists as elements")]
    ListInSet,
    #[error("associative list without keys has an element that's an explicit null")]
    NullInSet,
    #[error("invalid indexing of non-associative list")]
    Atomic,
    #[error("associative list with keys may not have a null element")]
    NullInMap,
    #[error("associative list with keys may not have non-map elements")]
    NoMap,
    /// The item has none of these keys.
    #[error(
        "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values for \
         any key fields)", quote_all(.0, " ")
    )]
    NoKeys(Vec<String>),
}

/// Returns the path element that identifies `item`.
///
/// # Errors
/// When the item cannot be identified.
pub(super) fn element(schema: &Schema, list: &List, item: &Value) -> Result<Element, ItemError> {
    interrupt::checkpoint();
    match &list.relation {
        ListRelation::Map(keys) => keyed(schema, list, keys, item),
        ListRelation::Set => match item {
            Value::Object(_) => Err(ItemError::MapInSet),
            Value::Array(_) => Err(ItemError::ListInSet),
            Value::Null => Err(ItemError::NullInSet),
            scalar => Ok(Element::Item(Scalar::of(scalar))),
        },
        ListRelation::Atomic => Err(ItemError::Atomic),
    }
}

fn keyed(schema: &Schema, list: &List, keys: &[String], item: &Value) -> Result<Element, ItemError> {
    let members = match item {
        Value::Object(members) => members,
        Value::Null => return Err(ItemError::NullInMap),
        _ => return Err(ItemError::NoMap),
    };
    let fields = schema.get(list.element).map.as_ref().map(|map| &map.fields);
    let default = |key: &String| fields?.get(key)?.default.as_ref();
    // Allocated without spare capacity, since there is one for each item.
    let mut found: Vec<(String, Scalar)> = Vec::with_capacity(keys.len());
    found.extend(
        keys.iter()
            .filter_map(|key| Some((key.clone(), Scalar::of(members.get(key).or_else(|| default(key))?)))),
    );
    if found.is_empty() {
        return Err(ItemError::NoKeys(keys.to_vec()));
    }
    found.sort();
    Ok(Element::Key(found))
}

/// Returns the items of a list with their elements; items that cannot be identified are left out.
pub(super) fn elements<'v>(schema: &Schema, list: &List, items: &'v [Value]) -> Vec<(Element, &'v Value)> {
    items.iter().filter_map(|item| Some((element(schema, list, item).ok()?, item))).collect()
}
