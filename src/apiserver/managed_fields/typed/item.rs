//! Determines the identity of list items: their key fields in map lists, their value in sets.

use admit_apimachinery::go::quote::quote_all;
use serde_json::Value;

use super::super::path::{Element, Scalar};
use super::super::schema::{List, ListRelation, Schema};
use crate::interrupt;

/// The element that leads to `item`.
///
/// # Errors
/// Why the item cannot be told apart from others.
pub(super) fn element(schema: &Schema, list: &List, item: &Value) -> Result<Element, String> {
    interrupt::checkpoint();
    match &list.relation {
        ListRelation::Map(keys) => keyed(schema, list, keys, item),
        ListRelation::Set => match item {
            Value::Object(_) => {
                Err("associative list without keys has an element that's a map type".to_owned())
            }
            Value::Array(_) => Err("not supported: associative list with lists as elements".to_owned()),
            Value::Null => {
                Err("associative list without keys has an element that's an explicit null".to_owned())
            }
            scalar => Ok(Element::Item(Scalar::of(scalar))),
        },
        ListRelation::Atomic => Err("invalid indexing of non-associative list".to_owned()),
    }
}

fn keyed(schema: &Schema, list: &List, keys: &[String], item: &Value) -> Result<Element, String> {
    let members = match item {
        Value::Object(members) => members,
        Value::Null => return Err("associative list with keys may not have a null element".to_owned()),
        _ => return Err("associative list with keys may not have non-map elements".to_owned()),
    };
    let fields = schema.get(list.element).map.as_ref().map(|map| &map.fields);
    let default = |key: &String| fields?.get(key)?.default.as_ref();
    // As large as it needs to be: there is one for each item.
    let mut found: Vec<(String, Scalar)> = Vec::with_capacity(keys.len());
    found.extend(
        keys.iter()
            .filter_map(|key| Some((key.clone(), Scalar::of(members.get(key).or_else(|| default(key))?)))),
    );
    if found.is_empty() {
        return Err(format!(
            "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values \
             for any key fields)",
            quote_all(keys, " ")
        ));
    }
    found.sort();
    Ok(Element::Key(found))
}

/// The items of a list with their elements; items that have none are left out.
pub(super) fn elements<'v>(schema: &Schema, list: &List, items: &'v [Value]) -> Vec<(Element, &'v Value)> {
    items.iter().filter_map(|item| Some((element(schema, list, item).ok()?, item))).collect()
}
