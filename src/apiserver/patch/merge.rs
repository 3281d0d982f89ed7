//! Implements JSON merge patch like the library that upstream uses.

use serde_json::{Map, Value};

use crate::interrupt;

/// Applies `patch` to `target`: null members are removed, also in all that is new.
pub(crate) fn apply(target: &mut Value, patch: &Value) {
    interrupt::checkpoint();
    match (target, patch) {
        (Value::Object(target), Value::Object(changes)) => {
            // All at once, as removing a single member moves those behind it.
            target.retain(|name, value| !value.is_null() || !changes.contains_key(name));
            target.retain(|name, _| changes.get(name).is_none_or(|change| !change.is_null()));
            for (name, change) in changes.iter().filter(|(_, change)| !change.is_null()) {
                match target.get_mut(name) {
                    Some(value) => apply(value, change),
                    None => drop(target.insert(name.clone(), without_nulls(change))),
                }
            }
        }
        // A value that replaces an object is taken unchanged.
        (target @ Value::Object(_), patch) => *target = patch.clone(),
        (target, patch) => *target = without_nulls(patch),
    }
}

/// Returns the value without null members; null items of lists stay.
fn without_nulls(value: &Value) -> Value {
    interrupt::checkpoint();
    match value {
        Value::Object(members) => {
            let given = members.iter().filter(|(_, value)| !value.is_null());
            Value::Object(
                given.map(|(name, value)| (name.clone(), without_nulls(value))).collect::<Map<_, _>>(),
            )
        }
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        scalar => scalar.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_null_goes_in_all_that_is_new() {
        let mut target = json!({"list": [1], "map": {"a": 1, "b": 2}, "gone": 1});
        let patch = json!({"list": [{"x": null, "y": [{"z": null}]}, null], "map": {"a": null, "c": {"d": null}},
            "gone": null, "new": {"e": null}});
        apply(&mut target, &patch);
        assert_eq!(target, json!({"list": [{"y": [{}]}, null], "map": {"b": 2, "c": {}}, "new": {}}));
        apply(&mut target, &json!({"map": [{"x": null}]}));
        assert_eq!(target["map"], json!([{"x": null}]));
    }
}
