//! Provides minimal valid objects of each kind, into which tests and analyses insert further fields.

use admit_policy::GroupVersionKind;
use serde_json::{Map, Value, json};

use super::catalogue::CATALOGUE;

/// The objects, one a line.
const OBJECTS: &str = include_str!("smallest.txt");

/// Returns the minimal objects of a kind; empty for kinds that are not stored.
pub(super) fn smallest(kind: &GroupVersionKind) -> Vec<Value> {
    let Some(served) = CATALOGUE.kind(kind) else { return Vec::new() };
    let lines = OBJECTS.lines().filter(|line| line.starts_with('{'));
    let objects = lines.filter_map(|line| serde_json::from_str::<Map<String, Value>>(line).ok());
    let is_it = |object: &Map<String, Value>| {
        object.get("apiVersion").is_some_and(|own| *own == kind.api_version())
            && object.get("kind").is_some_and(|own| *own == kind.kind)
    };
    let placed = |mut object: Map<String, Value>| {
        let metadata = object.entry("metadata").or_insert_with(|| json!({})).as_object_mut()?;
        metadata.entry("name").or_insert_with(|| json!("a"));
        if served.namespaced {
            metadata.insert("namespace".to_owned(), json!("default"));
        }
        Some(Value::Object(object))
    };
    objects.filter(is_it).filter_map(placed).collect()
}

#[cfg(test)]
mod tests {
    use admit_policy::Builtins as _;

    use super::*;
    use crate::BuiltinKinds;

    #[test]
    fn each_kind_that_is_stored_has_one_and_a_server_lets_it_in() {
        let refusal = |object: Value| {
            let prepared = BuiltinKinds.prepare(&object, None, false).unwrap();
            let why = prepared.refusal.map(|status| status.message).or(prepared.strict.into_iter().next());
            why.map(|why| format!("{object}: {why}"))
        };
        let each = CATALOGUE.kinds.iter().map(|served| (served, smallest(&served.kind)));
        let (none, some): (Vec<_>, Vec<_>) = each.partition(|(_, objects)| objects.is_empty());
        assert!(none.is_empty(), "{none:?}");
        let refused: Vec<String> =
            some.into_iter().flat_map(|(_, objects)| objects).filter_map(refusal).collect();
        assert!(refused.is_empty(), "{refused:#?}");
    }

    #[test]
    fn what_it_has_is_demanded() {
        let mut needless = Vec::new();
        for object in CATALOGUE.kinds.iter().flat_map(|served| smallest(&served.kind)) {
            let fields = object.as_object().unwrap().keys();
            for field in fields.filter(|field| !["apiVersion", "kind", "metadata"].contains(&&***field)) {
                let mut without = object.clone();
                without.as_object_mut().unwrap().remove(field);
                let prepared = BuiltinKinds.prepare(&without, None, false).unwrap();
                if prepared.refusal.is_none() {
                    needless.push(format!("{field} of {object}"));
                }
            }
        }
        assert!(needless.is_empty(), "{needless:#?}");
    }
}
