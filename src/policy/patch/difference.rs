//! Computes the JSON patch operations that turn one document into another, with a size limited by that of the new document.
//!
//! Inserting an item at the front changes every item behind it, and each operation repeats the path to its item: under a member with a
//! name of a megabyte, a list of a thousand items would need a gigabyte of operations. If the operations would be larger than the
//! document that they produce, its top-level members are replaced instead.

use serde_json::{Map, Value, json};

use super::text_len;

/// What an operation takes beside its path and its value: `{"op":"replace","path":"","value":},`.
const OPERATION: usize = 40;
/// How many bytes longer than the document the operations may be, so that small documents still get precise operations.
const FREE: usize = 4 << 10;

/// Returns the operations; empty if both are equal.
pub(super) fn operations(before: &Value, after: &Value) -> Vec<Value> {
    let mut written =
        Written { operations: Vec::new(), path: String::new(), left: text_len(after).saturating_add(FREE) };
    if written.value(before, after).is_some() {
        return written.operations;
    }
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => members(before, after),
        _ => vec![json!({"op": "replace", "path": "", "value": after})],
    }
}

/// Each member that differs, as a whole.
fn members(before: &Map<String, Value>, after: &Map<String, Value>) -> Vec<Value> {
    let gone = before.keys().filter(|name| !after.contains_key(*name));
    let gone = gone.map(|name| json!({"op": "remove", "path": format!("/{}", escaped(name))}));
    let new = after.iter().filter(|(name, value)| before.get(*name) != Some(*value));
    let new =
        new.map(|(name, value)| json!({"op": "add", "path": format!("/{}", escaped(name)), "value": value}));
    gone.chain(new).collect()
}

fn escaped(step: &str) -> String {
    step.replace('~', "~0").replace('/', "~1")
}

struct Written {
    operations: Vec<Value>,
    /// The pointer of the place that is looked at.
    path: String,
    /// Bytes that operations may still take.
    left: usize,
}

impl Written {
    /// Adds the operations that turn `before` into `after`; None if they exceed the limit.
    fn value(&mut self, before: &Value, after: &Value) -> Option<()> {
        match (before, after) {
            (Value::Object(before), Value::Object(after)) => {
                for (name, value) in before {
                    self.below(&escaped(name), |at| match after.get(name) {
                        Some(after) => at.value(value, after),
                        None => at.operation("remove", None),
                    })?;
                }
                for (name, value) in after.iter().filter(|(name, _)| !before.contains_key(*name)) {
                    self.below(&escaped(name), |at| at.operation("add", Some(value)))?;
                }
                Some(())
            }
            (Value::Array(before), Value::Array(after)) => {
                for (at, (before, after)) in before.iter().zip(after).enumerate() {
                    self.below(&at.to_string(), |here| here.value(before, after))?;
                }
                // From the end, so that earlier indices stay valid.
                for at in (after.len()..before.len()).rev() {
                    self.below(&at.to_string(), |here| here.operation("remove", None))?;
                }
                for (at, item) in after.iter().enumerate().skip(before.len()) {
                    self.below(&at.to_string(), |here| here.operation("add", Some(item)))?;
                }
                Some(())
            }
            (before, after) if before == after => Some(()),
            (_, after) => self.operation("replace", Some(after)),
        }
    }

    fn below(&mut self, step: &str, work: impl FnOnce(&mut Self) -> Option<()>) -> Option<()> {
        let length = self.path.len();
        self.path.push('/');
        self.path.push_str(step);
        let done = work(self);
        self.path.truncate(length);
        done
    }

    fn operation(&mut self, op: &str, value: Option<&Value>) -> Option<()> {
        let length = self.path.len().saturating_add(OPERATION);
        self.left = self.left.checked_sub(length)?.checked_sub(value.map_or(0, text_len))?;
        self.operations.push(match value {
            Some(value) => json!({"op": op, "path": self.path, "value": value}),
            None => json!({"op": op, "path": self.path}),
        });
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Replacing, decode, patched};
    use super::*;

    fn holds(before: &Value, after: &Value) -> Vec<Value> {
        let operations = operations(before, after);
        let list = decode(&Value::Array(operations.clone())).unwrap();
        assert_eq!(patched(before.clone(), &list, Replacing::Existing).as_ref(), Ok(after), "{operations:?}");
        operations
    }

    #[test]
    fn operations_make_the_one_of_the_other() {
        let values = [
            json!({}),
            json!({"a": 1}),
            json!({"a": [1, 2, 3], "b/c": {"~": null}}),
            json!({"a": [1], "b/c": {"~": true, "": []}}),
            json!({"a": [0, 1, 2, 3], "d": "x"}),
            json!([1, {"a": 2}]),
            json!([]),
            json!("text"),
        ];
        for before in &values {
            for after in &values {
                assert_eq!(holds(before, after).is_empty(), before == after, "{before} {after}");
            }
        }
    }

    #[test]
    fn what_differs_is_said_where_it_differs() {
        let (before, after) = (json!({"a": {"b": 1, "c": 2}}), json!({"a": {"b": 1, "c": 3, "d/e": 4}}));
        let expected = json!([
            {"op": "replace", "path": "/a/c", "value": 3}, {"op": "add", "path": "/a/d~1e", "value": 4},
        ]);
        assert_eq!(Value::from(holds(&before, &after)), expected);
    }

    #[test]
    fn operations_are_no_longer_than_what_they_make() {
        let long = "k".repeat(100_000);
        let of = |items: Vec<usize>| json!({"kept": 1, "data": {long.as_str(): items}});
        let (before, after) = (of((1..1_000).collect()), of((0..1_000).collect()));
        let operations = holds(&before, &after);
        assert_eq!(operations.len(), 1);
        assert_eq!(operations[0]["path"], "/data");
        let (before, after) = (json!(vec![long.as_str(); 3]), json!({"a": long}));
        assert_eq!(holds(&before, &after), [json!({"op": "replace", "path": "", "value": after})]);
    }
}
