//! Computes what `kubectl apply` makes of a live object of a built-in kind: a three-way strategic merge.
//!
//! Input: the manifest, the live object, and the manifest that was applied last. Fields of the manifest are set,
//! fields that only the last one had are removed, and all others stay. List items are identified by the merge keys of
//! the field tables.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::order::{Merged, first_places};
use super::strategic::message_of;
use crate::builtin::{Field, Tables, TypeId};

/// Applies `manifest` to `live`, an object of the kind `kind`.
#[must_use]
pub(crate) fn applied(tables: &Tables, kind: TypeId, manifest: &Value, live: &Value, last: &Value) -> Value {
    Merger { tables }.value(Some(kind), None, Sides { new: manifest, live, last })
}

/// The values at one path of the three documents; null if absent.
#[derive(Clone, Copy)]
struct Sides<'v> {
    new: &'v Value,
    live: &'v Value,
    last: &'v Value,
}

struct Merger<'t> {
    tables: &'t Tables,
}

impl Merger<'_> {
    fn value(&self, kind: Option<TypeId>, field: Option<&Field>, sides: Sides<'_>) -> Value {
        match (sides.new, sides.live) {
            (Value::Object(new), Value::Object(live)) => {
                Value::Object(self.object(kind, field, (new, live, sides.last)))
            }
            (Value::Array(new), Value::Array(live)) => match field.filter(|field| field.patch.merge) {
                Some(field) => Value::Array(self.list(field, new, live, sides.last)),
                None => sides.new.clone(),
            },
            _ => sides.new.clone(),
        }
    }

    fn object(
        &self,
        kind: Option<TypeId>,
        field: Option<&Field>,
        (new, live, last): (&Map<String, Value>, &Map<String, Value>, &Value),
    ) -> Map<String, Value> {
        let retains_keys = field.is_some_and(|field| field.patch.retain_keys);
        let mut out = Map::new();
        for (key, value) in live {
            match new.get(key) {
                Some(Value::Null) => {}
                // Keeps its position; the value is computed below.
                Some(_) => drop(out.insert(key.clone(), Value::Null)),
                None if retains_keys || last.get(key).is_some() => {}
                None => drop(out.insert(key.clone(), value.clone())),
            }
        }
        for (key, value) in new.iter().filter(|(_, value)| !value.is_null()) {
            let sides = Sides {
                new: value,
                live: live.get(key).unwrap_or(&Value::Null),
                last: last.get(key).unwrap_or(&Value::Null),
            };
            let field = kind.and_then(|kind| self.tables.field(kind, key));
            out.insert(key.clone(), self.value(message_of(field), field, sides));
        }
        out
    }

    /// Merges a list; live items that no manifest names keep their places among those that the new manifest orders.
    fn list(&self, field: &Field, new: &[Value], live: &[Value], last: &Value) -> Vec<Value> {
        let merge_key = field.patch.merge_key;
        let last = by_key(last.as_array().map(Vec::as_slice).unwrap_or_default(), merge_key);
        let (changes, known) = (by_key(new, merge_key), by_key(live, merge_key));
        let mut merged: Vec<(Option<usize>, Value)> = Vec::with_capacity(new.len());
        for (place, item) in first_places(live, merge_key).into_iter().map(Some).zip(live) {
            let key = key_of(item, merge_key);
            match (changes.get(&key), last.get(&key)) {
                (Some(change), last) => {
                    let sides = Sides { new: change, live: item, last: last.unwrap_or(&&Value::Null) };
                    merged.push((place, self.value(message_of(Some(field)), Some(field), sides)));
                }
                (None, Some(_)) => {}
                (None, None) => merged.push((place, item.clone())),
            }
        }
        let added = new.iter().filter(|item| !known.contains_key(&key_of(item, merge_key)));
        merged.extend(added.map(|item| (None, item.clone())));
        Merged::new(merged.into_iter()).arranged(new, merge_key).into_values()
    }
}

/// Returns what identifies an item: the value of its merge key, or the whole item if there is none.
fn key_of<'v>(item: &'v Value, merge_key: &str) -> Option<&'v Value> {
    match merge_key {
        "" => Some(item),
        key => item.get(key),
    }
}

/// Maps each key to the first item with it.
fn by_key<'v>(items: &'v [Value], merge_key: &str) -> HashMap<Option<&'v Value>, &'v Value> {
    let mut found = HashMap::with_capacity(items.len());
    for item in items {
        found.entry(key_of(item, merge_key)).or_insert(item);
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::builtin::tables;

    fn made(kind: (&str, &str, &str), manifest: &Value, live: &Value, last: &Value) -> Value {
        let id = tables().kind(kind.0, kind.1, kind.2).expect("the kind is known");
        applied(tables(), id, manifest, live, last)
    }

    #[test]
    fn lists_are_merged_by_their_keys() {
        let containers = |list: Value| json!({"spec": {"containers": list}});
        let live = containers(json!([
            {"name": "injected", "image": "i"},
            {"name": "a", "image": "a:1", "imagePullPolicy": "Always", "env": [{"name": "X", "value": "1"}]},
            {"name": "gone", "image": "g"},
        ]));
        let last =
            containers(json!([{"name": "a", "image": "a:1", "env": [{"name": "X"}]}, {"name": "gone"}]));
        let manifest = containers(json!([{"name": "b", "image": "b"}, {"name": "a", "image": "a:2"}]));
        let made = made(("", "v1", "Pod"), &manifest, &live, &last);
        let expected = containers(json!([
            {"name": "b", "image": "b"},
            {"name": "injected", "image": "i"},
            {"name": "a", "image": "a:2", "imagePullPolicy": "Always"},
        ]));
        assert_eq!(made, expected);
    }

    #[test]
    fn lists_without_keys_are_replaced_and_lists_of_texts_joined() {
        let live = json!({"metadata": {"finalizers": ["theirs/x", "ours/y"]},
            "spec": {"containers": [{"name": "a", "args": ["1", "2"]}]}});
        let last = json!({"metadata": {"finalizers": ["ours/y"]}});
        let manifest = json!({"metadata": {"finalizers": ["ours/z"]},
            "spec": {"containers": [{"name": "a", "args": ["3"]}]}});
        let made = made(("", "v1", "Pod"), &manifest, &live, &last);
        let expected = json!({"metadata": {"finalizers": ["ours/z", "theirs/x"]},
            "spec": {"containers": [{"name": "a", "args": ["3"]}]}});
        assert_eq!(made, expected);
    }

    #[test]
    fn a_union_has_the_member_that_the_manifest_names() {
        let live = json!({"spec": {"replicas": 3,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}});
        let manifest = json!({"spec": {"strategy": {"type": "Recreate"}}});
        let made = made(("apps", "v1", "Deployment"), &manifest, &live, &Value::Null);
        assert_eq!(made, json!({"spec": {"replicas": 3, "strategy": {"type": "Recreate"}}}));
    }
}
