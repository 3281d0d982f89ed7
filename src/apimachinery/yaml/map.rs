//! Builds a map: checks its keys, and merges maps with `<<`.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::position::{Position, Positions};
use super::tree::{Duplicate, YamlError};
use crate::bounded::push_step;

/// The most duplicate keys that are reported; the rest is only counted.
const MAX_DUPLICATES: usize = 100;

/// A finished node.
pub(super) type Node = (Value, Positions);

/// A map that has not ended.
pub(super) struct OpenMap {
    pub(super) anchor: usize,
    pub(super) here: Position,
    pub(super) values: Map<String, Value>,
    pub(super) positions: HashMap<String, Positions>,
    /// The key whose value comes next; `None` before a key.
    pub(super) key: Option<Key>,
    /// Keys that were merged and not written here: they may be set once more.
    merged: HashSet<String>,
}

pub(super) struct Key {
    pub(super) name: String,
    pub(super) here: Position,
    /// Whether it is the merge key `<<`; a quoted one is not.
    pub(super) merges: bool,
}

/// The text and style of a scalar.
#[derive(Clone, Copy)]
pub(super) struct Spelling<'t> {
    pub(super) text: &'t str,
    pub(super) merges: bool,
}

/// The duplicate keys of maps.
#[derive(Default)]
pub(super) struct Duplicates {
    pub(super) told: Vec<Duplicate>,
    pub(super) more: usize,
}

impl Duplicates {
    pub(super) fn note(&mut self, key: &str, position: Position) {
        if self.told.len() >= MAX_DUPLICATES {
            self.more = self.more.saturating_add(1);
            return;
        }
        let mut shown = String::new();
        push_step(&mut shown, key);
        self.told.push(Duplicate { key: shown, position });
    }
}

impl Key {
    /// Converts a key to a string as JSON needs it: a boolean becomes `true` or `false`, a number keeps its spelling.
    pub(super) fn of(
        value: &Value,
        spelling: Option<Spelling<'_>>,
        here: Position,
    ) -> Result<Self, YamlError> {
        let name = match value {
            Value::String(key) => key.clone(),
            Value::Bool(flag) => flag.to_string(),
            Value::Number(number) => {
                spelling.map_or_else(|| number.to_string(), |spelling| spelling.text.to_owned())
            }
            Value::Null => "null".to_owned(),
            Value::Array(_) | Value::Object(_) => {
                return Err(YamlError::new(here, "a map's key must be a scalar"));
            }
        };
        Ok(Self { name, here, merges: spelling.is_some_and(|spelling| spelling.merges) })
    }
}

impl OpenMap {
    pub(super) fn new(anchor: usize, here: Position) -> Self {
        let (values, positions) = (Map::new(), HashMap::new());
        Self { anchor, here, values, positions, key: None, merged: HashSet::new() }
    }

    /// Whether `key` was written before; a merged key does not count, and from now on is a written one.
    pub(super) fn is_duplicate(&mut self, key: &str) -> bool {
        self.values.contains_key(key) && !self.merged.remove(key)
    }

    pub(super) fn insert(&mut self, key: String, (value, positions): Node, placed: bool) {
        if placed {
            self.positions.insert(key.clone(), positions);
        }
        self.values.insert(key, value);
    }

    /// Merges `<<: map` or `<<: [map, …]`: adds missing entries; earlier maps take precedence.
    pub(super) fn merge(
        &mut self,
        (value, positions): Node,
        at: Position,
        placed: bool,
    ) -> Result<(), YamlError> {
        let sources: Vec<Node> = match value {
            Value::Object(_) => vec![(value, positions)],
            Value::Array(items) => items
                .into_iter()
                .enumerate()
                .map(|(index, item)| (item, positions.item(index).cloned().unwrap_or_default()))
                .collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                return Err(YamlError::new(at, "a merge key takes a map, or a list of maps"));
            }
        };
        for (source, positions) in sources {
            let Value::Object(entries) = source else {
                return Err(YamlError::new(at, "a merge key takes maps only"));
            };
            let mut positions = positions.into_entries();
            for (key, value) in entries {
                if !self.values.contains_key(&key) {
                    let positions = positions.remove(&key).unwrap_or_default();
                    self.merged.insert(key.clone());
                    self.insert(key, (value, positions), placed);
                }
            }
        }
        Ok(())
    }
}
