//! Merges a manifest into a live object as `kubectl apply` does: fields of the manifest are set, fields that only an
//! earlier manifest had are removed, and all others are kept.
//!
//! Lists of kinds that a [`Builtins`] knows are merged by their keys; lists of all other kinds are replaced as a
//! whole.

use serde_json::{Map, Value};

use crate::set::builtins::Builtins;

/// The annotation in which kubectl stores what it applied last.
const LAST_APPLIED: &str = "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration";

/// Whether `object` was read from a server: only that gives objects an identity.
pub(super) fn is_live(object: &Value) -> bool {
    let has = |field: &str| object.get("metadata").is_some_and(|metadata| metadata.get(field).is_some());
    has("uid") || has("resourceVersion")
}

/// `live` with `manifest` applied to it.
pub(super) fn applied(manifest: &Value, live: &Value, builtins: Option<&dyn Builtins>) -> Value {
    let text = live.pointer(LAST_APPLIED).and_then(Value::as_str);
    let last = text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or(Value::Null);
    let mut manifest = manifest.clone();
    // kubectl gives every manifest annotations before it compares: those of others stay.
    if let Some(metadata) = manifest.get_mut("metadata").and_then(Value::as_object_mut)
        && live.pointer("/metadata/annotations").is_some()
    {
        metadata.entry("annotations").or_insert_with(|| Value::Object(Map::new()));
    }
    let known = builtins.and_then(|kinds| kinds.applied(&manifest, live, &last));
    known.unwrap_or_else(|| merged(&manifest, live, &last))
}

fn merged(new: &Value, live: &Value, last: &Value) -> Value {
    let (Value::Object(new), Value::Object(live)) = (new, live) else { return new.clone() };
    let nothing = Map::new();
    let last = last.as_object().unwrap_or(&nothing);
    let mut out = Map::new();
    for (key, live) in live {
        match new.get(key) {
            // Null is a value that is not to be there.
            Some(Value::Null) => {}
            Some(value) => {
                let last = last.get(key).unwrap_or(&Value::Null);
                out.insert(key.clone(), merged(value, live, last));
            }
            None if last.contains_key(key) => {}
            None => drop(out.insert(key.clone(), live.clone())),
        }
    }
    let added = new.iter().filter(|(key, value)| !live.contains_key(*key) && !value.is_null());
    out.extend(added.map(|(key, value)| (key.clone(), value.clone())));
    Value::Object(out)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::applied;

    #[test]
    fn only_what_manifests_speak_of_changes() {
        let last = json!({"metadata": {"annotations": {}, "labels": {"a": "1", "b": "1"}}, "spec": {"x": 1, "list": [1], "gone": {"y": 1}}});
        let live = json!({
            "metadata": {
                "uid": "u",
                "annotations": {"kubectl.kubernetes.io/last-applied-configuration": last.to_string()},
                "labels": {"a": "1", "b": "1", "theirs": "1"},
            },
            "spec": {"x": 1, "list": [1, 2], "gone": {"y": 1}, "scaled": 3},
        });
        let manifest =
            json!({"metadata": {"labels": {"a": "2"}}, "spec": {"x": 1, "list": [3], "scaled": null}});
        let made = applied(&manifest, &live, None);
        assert_eq!(made["metadata"]["labels"], json!({"a": "2", "theirs": "1"}));
        assert_eq!(made["metadata"]["uid"], "u");
        assert_eq!(made["metadata"]["annotations"], live["metadata"]["annotations"]);
        assert_eq!(made["spec"], json!({"x": 1, "list": [3]}));
    }

    #[test]
    fn without_an_earlier_manifest_nothing_is_taken_away() {
        let live = json!({"metadata": {"uid": "u"}, "spec": {"a": 1, "b": {"c": 1}}});
        let made = applied(&json!({"spec": {"b": {"d": 2}}}), &live, None);
        assert_eq!(made["spec"], json!({"a": 1, "b": {"c": 1, "d": 2}}));
        assert_eq!(applied(&json!({"metadata": {}}), &live, None), live);
    }
}
