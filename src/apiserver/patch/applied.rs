//! What `kubectl apply` makes of a live object of a built-in kind: a three-way strategic merge.
//!
//! Input: the manifest, the live object, and the manifest that was applied last. What the manifest says counts, what only
//! the last one said goes, all else stays. Items of lists are told apart by the merge keys of the field tables.

use serde_json::{Map, Value};

use super::strategic::{in_order, message_of};
use crate::builtin::{Field, Tables, TypeId};

/// `live`, an object of the kind `kind`, with `manifest` applied to it.
#[must_use]
pub fn applied(tables: &Tables, kind: TypeId, manifest: &Value, live: &Value, last: &Value) -> Value {
    Merger { tables }.value(Some(kind), None, Sides { new: manifest, live, last })
}

/// One place in the three documents. Nothing at all is null.
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
        let mut out = live.clone();
        out.retain(|key, _| new.contains_key(key) || (!retains_keys && last.get(key).is_none()));
        for (key, value) in new {
            if value.is_null() {
                out.shift_remove(key);
                continue;
            }
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

    /// Live items that no manifest speaks of keep their places beside those that the new one orders.
    fn list(&self, field: &Field, new: &[Value], live: &[Value], last: &Value) -> Vec<Value> {
        let merge_key = field.patch.merge_key;
        let last = last.as_array().map(Vec::as_slice).unwrap_or_default();
        let same = |one: &Value, other: &Value| match merge_key {
            "" => one == other,
            key => one.get(key) == other.get(key),
        };
        let find = |list: &'_ [Value], item: &Value| list.iter().find(|other| same(item, other)).cloned();
        let mut merged: Vec<Value> = Vec::with_capacity(new.len());
        for item in live {
            match find(new, item) {
                Some(change) => {
                    let last = find(last, item).unwrap_or(Value::Null);
                    let sides = Sides { new: &change, live: item, last: &last };
                    merged.push(self.value(message_of(Some(field)), Some(field), sides));
                }
                None if find(last, item).is_some() => {}
                None => merged.push(item.clone()),
            }
        }
        merged.extend(new.iter().filter(|item| find(live, item).is_none()).cloned());
        in_order(merged, &[], Some(&new.to_vec()), merge_key)
    }
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
            {"name": "injected", "image": "i"},
            {"name": "b", "image": "b"},
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
        let expected = json!({"metadata": {"finalizers": ["theirs/x", "ours/z"]},
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
