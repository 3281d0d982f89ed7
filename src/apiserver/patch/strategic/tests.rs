//! Patches of pods, each with what it makes.

use serde_json::json;

use super::*;
use crate::builtin::tables;

fn patched(original: &Value, patch: &Value) -> Result<Value, PatchError> {
    let kind = tables().kind("", "v1", "Pod").expect("the Pod kind");
    let (original, patch) = (original.as_object().expect("object"), patch.as_object().expect("object"));
    apply(tables(), kind, original.clone(), &mut patch.clone()).map(Value::Object)
}

fn containers(value: &Value) -> Value {
    json!({"spec": {"containers": value}})
}

#[test]
fn keyed_lists_are_merged_item_by_item() {
    let original = containers(&json!([{"name": "a", "image": "1"}, {"name": "b", "image": "2"}]));
    let patch = containers(&json!([{"name": "b", "image": "3"}, {"name": "c", "image": "4"}]));
    let expected = containers(
        &json!([{"name": "a", "image": "1"}, {"name": "b", "image": "3"}, {"name": "c", "image": "4"}]),
    );
    assert_eq!(patched(&original, &patch), Ok(expected));
}

#[test]
fn what_comes_stands_before_what_was_there() {
    let names = |original: &[&str], patch: &[&str]| -> Vec<String> {
        let list = |names: &[&str]| containers(&names.iter().map(|name| json!({"name": name})).collect());
        let made = patched(&list(original), &list(patch)).expect("applied");
        let made = made["spec"]["containers"].as_array().cloned().unwrap_or_default();
        made.iter().filter_map(|item| item["name"].as_str().map(str::to_owned)).collect()
    };
    assert_eq!(names(&["a"], &["sidecar"]), ["sidecar", "a"]);
    assert_eq!(names(&["a", "b", "c"], &["c", "a"]), ["b", "c", "a"]);
    assert_eq!(names(&["a", "b"], &["x", "a", "y"]), ["x", "a", "y", "b"]);
    assert_eq!(names(&["a", "b"], &["b", "x"]), ["a", "b", "x"]);
    assert_eq!(names(&[], &["a", "a"]), ["a"]);
    let added =
        json!({"spec": {"containers": [{"name": "a"}, {"$patch": "delete", "name": "b"}, {"name": "a"}]}});
    assert_eq!(patched(&json!({}), &added), Ok(containers(&json!([{"name": "a"}, {"name": "a"}]))));
}

#[test]
fn an_order_names_all_that_the_patch_does() {
    let patch = json!({"spec": {"$setElementOrder/containers": [{"name": "b"}],
        "containers": [{"name": "a"}]}});
    let why =
        "The order in patch list:\n[map[name:a]]\n doesn't match $setElementOrder list:\n[map[name:b]]\n";
    let told = patched(&containers(&json!([{"name": "b"}])), &patch).map_err(|error| error.to_string());
    assert_eq!(told, Err(why.to_owned()));
}

#[test]
fn directives_delete_replace_and_order() {
    let original = containers(&json!([{"name": "a", "image": "1"}, {"name": "b", "image": "2"}]));
    let delete = containers(&json!([{"name": "a", "$patch": "delete"}]));
    assert_eq!(patched(&original, &delete), Ok(containers(&json!([{"name": "b", "image": "2"}]))));
    let replace = containers(&json!([{"name": "z"}, {"$patch": "replace"}]));
    assert_eq!(patched(&original, &replace), Ok(containers(&json!([{"name": "z"}]))));
    let order = json!({"spec": {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}],
        "containers": [{"name": "a", "image": "9"}]}});
    let expected = containers(&json!([{"name": "b", "image": "2"}, {"name": "a", "image": "9"}]));
    assert_eq!(patched(&original, &order), Ok(expected));
}

#[test]
fn lists_of_scalars_and_retained_keys() {
    let original = json!({"metadata": {"finalizers": ["a/x", "b/y"]},
        "spec": {"volumes": [{"name": "v", "emptyDir": {}}]}});
    let patch = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a/x"], "finalizers": ["c/z"]},
        "spec": {"volumes": [{"name": "v", "$retainKeys": ["name", "configMap"], "configMap": {"name": "m"}}]}});
    let expected = json!({"metadata": {"finalizers": ["c/z", "b/y"]},
        "spec": {"volumes": [{"name": "v", "configMap": {"name": "m"}}]}});
    assert_eq!(patched(&original, &patch), Ok(expected));
    let kept = json!({"spec": {"volumes": [{"name": "v", "$retainKeys": ["name"], "configMap": {}}]}});
    assert_eq!(patched(&original, &kept), Err(PatchError::DirectiveFormat("retainKeys")));
}

#[test]
fn a_missing_key_and_an_unknown_directive_are_refused() {
    let original = containers(&json!([{"name": "a"}]));
    assert_eq!(
        patched(&original, &containers(&json!([{"image": "x"}]))).map_err(|error| error.to_string()),
        Err("map: map[image:x] does not contain declared merge key: name".to_owned())
    );
    assert_eq!(
        patched(&original, &json!({"spec": {"$patch": "x"}})),
        Err(PatchError::UnknownDirective("x".to_owned(), "map[$patch:x]".to_owned()))
    );
}

#[test]
fn what_cannot_be_merged_or_ordered_is_refused_in_upstreams_words() {
    let finalizers = json!({"metadata": {"finalizers": ["a/x"]}});
    let pod = containers(&json!([{"name": "a", "args": ["x"]}]));
    let named = json!({"metadata": {"name": "x"}});
    let cases = [
        (
            &finalizers,
            json!({"metadata": {"finalizers": ["b/y", null]}}),
            "list element types are not identical: [[a/x] [b/y <nil>]]",
        ),
        (&pod, json!({"spec": {"$patch": 1}}), "unknown patch type: %!s(int64=1) in map: map[$patch:1]"),
        (
            &pod,
            json!({"spec": {"containers": 8, "$setElementOrder/containers": []}}),
            "expected a []interface {}, but received a int64",
        ),
        (
            &pod,
            json!({"spec": {"containers": null, "$setElementOrder/containers": []}}),
            "expected a []interface {}, but received a %!s(<nil>)",
        ),
        (
            &pod,
            json!({"spec": {"$setElementOrder/x": []}}),
            "unable to find api field in struct PodSpec for the json field \"x\"",
        ),
        (
            &pod,
            json!({"spec": {"$setElementOrder/nodeName": []}}),
            "expected slice or array type, but got: struct",
        ),
        (
            &pod,
            json!({"spec": {"$setElementOrder/containers": [1], "containers": [{"name": "a"}]}}),
            "expected a map[string]interface {}, but received a int64",
        ),
        (&pod, json!({"spec": {"$setElementOrder/containers": ["a"]}}), "value for key 0 is not a map"),
        (&pod, json!({"$setElementOrder": ["a"]}), "invalid patch format of setElementOrder list"),
        (
            &named,
            json!({"metadata": {"finalizers": [], "$setElementOrder/finalizers": []}}),
            "no elements in any of the given slices",
        ),
    ];
    for (original, patch, why) in cases {
        assert_eq!(
            patched(original, &patch).map_err(|error| error.to_string()),
            Err(why.to_owned()),
            "{patch}"
        );
    }
}

#[test]
fn deletions_come_after_the_order_and_apply_to_lists_that_are_replaced() {
    let original = json!({"metadata": {"finalizers": ["a/x", "b/y"]}, "spec": {"containers": [{"name": "a", "args": ["x", "y"]}]}});
    let patch = json!({"metadata": {"finalizers": ["c/z"], "$setElementOrder/finalizers": ["c/z", "b/y"],
            "$deleteFromPrimitiveList/finalizers": ["a/x", "c/z"]},
        "spec": {"containers": [{"name": "a", "args": ["x", "z"], "$deleteFromPrimitiveList/args": ["x"]}]}});
    let expected =
        json!({"metadata": {"finalizers": ["b/y"]}, "spec": {"containers": [{"name": "a", "args": ["z"]}]}});
    assert_eq!(patched(&original, &patch), Ok(expected));
}

#[test]
fn what_was_followed_is_gone_from_the_patch() {
    let kind = tables().kind("", "v1", "Pod").expect("the Pod kind");
    let original = containers(&json!([{"name": "a"}]));
    let mut patch = json!({"metadata": {"labels": {"a": null}, "$deleteFromPrimitiveList/finalizers": ["x"]},
        "spec": {"$setElementOrder/containers": [{"name": "a"}], "containers": [{"name": "a"}], "$retainKeys": ["containers"]}});
    let patch = patch.as_object_mut().expect("object");
    apply(tables(), kind, original.as_object().expect("object").clone(), patch).expect("applied");
    let left = json!({"metadata": {"labels": {}, "$deleteFromPrimitiveList/finalizers": ["x"]}, "spec": {}});
    assert_eq!(Value::Object(patch.clone()), left);
}

#[test]
fn directives_of_what_is_new_are_unknown_fields_but_for_patch() {
    let patch = json!({"spec": {"affinity": {"$retainKeys": ["podAffinity"], "podAffinity": {"$patch": "delete"}, "nodeAffinity": null}}});
    let expected = json!({"spec": {"affinity": {"$retainKeys": ["podAffinity"]}}});
    assert_eq!(patched(&json!({"spec": {}}), &patch), Ok(expected));
}

/// This took minutes: every item was looked for in all others, and all orders for every item.
#[test]
fn a_hundred_thousand_items_are_merged_and_ordered_in_time() {
    let list = |count: usize, image: &str| -> Vec<Value> {
        (0..count).map(|n| json!({"name": format!("c{n}"), "image": image})).collect()
    };
    let (original, mut changes) = (list(100_000, "a"), list(50_000, "b"));
    changes.extend((0..20_000).map(|n| json!({"name": format!("c{}", 60_000 + n), "$patch": "delete"})));
    let order: Vec<Value> = (0..60_000).map(|n| json!({"name": format!("c{n}")})).collect();
    let patch = json!({"spec": {"containers": changes, "$setElementOrder/containers": order}});
    let made = patched(&containers(&original.into()), &patch).expect("applied");
    let made = made["spec"]["containers"].as_array().expect("a list");
    assert_eq!(made.len(), 80_000);
    assert!(made.contains(&json!({"name": "c39999", "image": "b"})));
}

/// A removal by itself moves all members behind it, so they have to be removed together.
#[test]
fn a_hundred_thousand_members_are_removed_in_time() {
    let names = || (0..100_000).map(|n| format!("k{n}"));
    let original: Map<String, Value> = names().map(|name| (name, "v".into())).collect();
    let deleted: Map<String, Value> =
        names().map(|name| (format!("{DELETE_FROM_PRIMITIVES}/{name}"), Value::Null)).collect();
    let held: Map<String, Value> = names().map(|name| (name, json!({"$patch": "delete"}))).collect();
    for patch in [deleted, held] {
        let patch = json!({"metadata": {"labels": patch}});
        let made = patched(&json!({"metadata": {"labels": original}}), &patch);
        assert_eq!(made, Ok(json!({"metadata": {"labels": {}}})));
    }
}
