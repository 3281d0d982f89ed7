//! Finds the old value that corresponds to a new one: properties and map entries by key, items of map lists by their keys, none in
//! other lists. Ratcheting uses it to see whether a node is unchanged, and rules to set `oldSelf`.

use std::collections::HashMap;

use admit_apimachinery::go;
use serde_json::{Map, Value};

use super::{ListType, Schema, SchemaType};

/// A node of a new document with the old value that belongs to it.
///
/// ```
/// use admit_policy::Path;
/// use admit_policy::schema::{self, Correlated, Items, MapListIndex};
/// use serde_json::json;
///
/// let schema = schema::parse(
///     &json!({"type": "object", "properties": {"ports": {
///         "type": "array",
///         "x-kubernetes-list-type": "map",
///         "x-kubernetes-list-map-keys": ["name"],
///         "items": {"type": "object", "properties": {"name": {"type": "string"}, "port": {"type": "integer"}}},
///     }}}),
///     &Path::Nil,
/// )
/// .unwrap();
/// let old = json!({"ports": [{"name": "a", "port": 1}, {"name": "b", "port": 2}]});
/// let new = json!({"ports": [{"name": "b", "port": 2}, {"name": "a", "port": 7}]});
/// let ports = Correlated { new: &new, old: &old, schema: &schema }.key("ports").unwrap();
/// assert!(!ports.is_unchanged());
/// let items = ports.items();
/// assert!(items.get(0).is_some_and(|b| b.is_unchanged()) && items.get(1).is_some_and(|a| !a.is_unchanged()));
/// assert!(Items::none().get(0).is_none());
///
/// let index = MapListIndex::new(ports.schema, old["ports"].as_array().unwrap()).unwrap();
/// assert_eq!(index.position(&json!({"name": "b"})), Some(1));
/// assert_eq!(index.find(&json!({"name": "b"})).unwrap()["port"], 2);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Correlated<'a> {
    pub new: &'a Value,
    pub old: &'a Value,
    pub schema: &'a Schema,
}

impl<'a> Correlated<'a> {
    /// Returns the pair for a property or map entry; None where either side lacks it or the schema does not declare it.
    #[must_use]
    pub fn key(&self, key: &str) -> Option<Self> {
        let new = self.new.as_object()?.get(key)?;
        let old = self.old.as_object()?.get(key)?;
        Some(Self { new, old, schema: self.schema.child(key)? })
    }

    /// The pairs of a list's items by index; none for items without an old one.
    #[must_use]
    pub fn items(&self) -> Items<'a> {
        let (Some(new), Some(old), Some(schema)) =
            (self.new.as_array(), self.old.as_array(), self.schema.items.as_deref())
        else {
            return Items::none();
        };
        Items { new, schema: Some(schema), old: MapListIndex::new(self.schema, old) }
    }

    /// Whether the node is unchanged. Items of map lists may have moved; undeclared fields make an object unequal, since they are not
    /// correlated.
    #[must_use]
    pub fn is_unchanged(&self) -> bool {
        match (self.new, self.old) {
            (Value::Array(new), Value::Array(old)) => {
                if new.len() != old.len() {
                    return false;
                }
                let items = self.items();
                if items.old.is_none() {
                    return new == old;
                }
                (0..new.len()).all(|i| items.get(i).is_some_and(|item| item.is_unchanged()))
            }
            (Value::Object(new), Value::Object(old)) => {
                new.len() == old.len()
                    && new.keys().all(|key| self.key(key).is_some_and(|child| child.is_unchanged()))
            }
            (new, old) => new == old,
        }
    }
}

/// The items of a new list, each with its old one.
///
/// [`Correlated`] has an example.
#[derive(Debug)]
pub struct Items<'a> {
    new: &'a [Value],
    schema: Option<&'a Schema>,
    old: Option<MapListIndex<'a>>,
}

impl<'a> Items<'a> {
    /// No item has an old one.
    #[must_use]
    pub const fn none() -> Self {
        Self { new: &[], schema: None, old: None }
    }

    /// The pair of the item at `index` of the new list.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<Correlated<'a>> {
        let new = self.new.get(index)?;
        let old = self.old.as_ref()?.find(new)?;
        Some(Correlated { new, old, schema: self.schema? })
    }
}

/// The items of a list of type map by their keys; of several with the same keys the first.
///
/// [`Correlated`] has an example.
#[derive(Debug)]
pub struct MapListIndex<'a> {
    keys: &'a [Box<str>],
    items: &'a [Value],
    positions: HashMap<String, usize>,
}

impl<'a> MapListIndex<'a> {
    /// None unless the schema is of a list of type map and there are items.
    #[must_use]
    pub fn new(schema: &'a Schema, items: &'a [Value]) -> Option<Self> {
        let is_map_list = schema.is_type(&SchemaType::Array) && schema.list_type == Some(ListType::Map);
        if !is_map_list || schema.list_map_keys.is_empty() || items.is_empty() {
            return None;
        }
        let keys = schema.list_map_keys.as_slice();
        let mut positions = HashMap::with_capacity(items.len());
        for (i, item) in items.iter().enumerate() {
            if let Some(key) = item.as_object().and_then(|item| composite_key(item, keys)) {
                positions.entry(key).or_insert(i);
            }
        }
        Some(Self { keys, items, positions })
    }

    /// Returns the item with the same keys; None where a key is missing or no scalar.
    #[must_use]
    pub fn find(&self, item: &Value) -> Option<&'a Value> {
        self.items.get(self.position(item)?)
    }

    /// The index of the item with the same keys.
    #[must_use]
    pub fn position(&self, item: &Value) -> Option<usize> {
        self.positions.get(&composite_key(item.as_object()?, self.keys)?).copied()
    }
}

/// Encodes the values of the keys as one string that distinguishes strings, integers, floats and booleans.
fn composite_key(item: &Map<String, Value>, keys: &[Box<str>]) -> Option<String> {
    let mut text = String::new();
    for key in keys {
        text.push('\0');
        match item.get(&**key)? {
            Value::Bool(flag) => text.push_str(if *flag { "true" } else { "false" }),
            Value::Number(number) => match number.as_i64() {
                Some(integer) => text.push_str(&integer.to_string()),
                // Several keys are formatted with `%f`, six digits after the point; a single one is compared exactly.
                None if keys.len() > 1 => text.push_str(&format!("{:.6}", number.as_f64()?)),
                None => text.push_str(&format!("f{}", number.as_f64()?)),
            },
            Value::String(value) => text.push_str(&go::quote(value)),
            Value::Null | Value::Array(_) | Value::Object(_) => return None,
        }
    }
    Some(text)
}
