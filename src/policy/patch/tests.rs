//! Tests of each patch operation: limits on copies and depth, and time on large maps and lists.

use json_patch::PatchOperation;
use serde_json::{Value, json};

use super::*;

fn operations(list: &Value) -> Vec<PatchOperation> {
    decode(list).expect("operations").0
}

fn made(target: Value, list: &Value) -> Result<Value, String> {
    patched(target, &operations(list), Replacing::OrAdding).map_err(|error| error.kind.to_string())
}

#[test]
fn the_six_operations() {
    let target = json!({"b": {"z": 1, "y": [1, 2, 3]}, "a": {"z": 1, "c": 2}});
    let patch = json!([
        {"op": "test", "path": "/b/y/1", "value": 2},
        {"op": "add", "path": "/b/y/-", "value": 4},
        {"op": "add", "path": "/b/y/0", "value": 0},
        {"op": "remove", "path": "/b/y/1"},
        {"op": "replace", "path": "/b/y/1", "value": {"k": []}},
        {"op": "replace", "path": "/b/new", "value": true},
        {"op": "copy", "from": "/b/y", "path": "/copied"},
        {"op": "move", "from": "/b/z", "path": "/b/y/1/k/0"},
    ]);
    let expected = r#"{"a":{"z":1,"c":2},"b":{"new":true,"y":[0,{"k":[1]},3,4]},"copied":[0,{"k":[]},3,4]}"#;
    // Opened containers are sorted, unopened ones keep their order.
    assert_eq!(made(target, &patch).map(|value| value.to_string()).as_deref(), Ok(expected));
}

/// A test opens what it compares, and a copy is made once the way to its place is open.
#[test]
fn tests_and_copies_open_containers() {
    let text = |patch: Value| {
        let target = json!({"z": {"y": {"b": 1, "a": 2}, "x": [{"d": 1, "c": 2}]}, "k": 1});
        made(target, &patch).expect("applied").to_string()
    };
    let compared =
        json!([{"op": "test", "path": "/z", "value": {"x": [{"c": 2, "d": 1}], "y": {"a": 2, "b": 1}}}]);
    assert_eq!(text(compared), r#"{"k":1,"z":{"x":[{"c":2,"d":1}],"y":{"a":2,"b":1}}}"#);
    let copied = json!([{"op": "copy", "from": "/z", "path": "/z/n"}]);
    assert_eq!(
        text(copied),
        r#"{"k":1,"z":{"n":{"x":[{"d":1,"c":2}],"y":{"b":1,"a":2}},"x":[{"d":1,"c":2}],"y":{"b":1,"a":2}}}"#
    );
}

/// Indices are parsed as in Go; negative ones count from the end, where an added item has an index of its own.
#[test]
fn places_are_numbers_with_a_sign() {
    let patch = json!([
        {"op": "test", "path": "/a/-1", "value": 3},
        {"op": "replace", "path": "/a/-3", "value": 0},
        {"op": "add", "path": "/a/-1", "value": 4},
        {"op": "add", "path": "/a/-5", "value": -1},
        {"op": "remove", "path": "/a/+1"},
        {"op": "copy", "from": "/a/-1", "path": "/a/00"},
        {"op": "move", "from": "/a/-1", "path": "/a/-0"},
    ]);
    assert_eq!(made(json!({"a": [1, 2, 3]}), &patch), Ok(json!({"a": [4, 4, -1, 2, 3]})));
}

#[test]
fn what_cannot_be_applied_says_why() {
    let why = |list: Value| made(json!({"a": [1], "b": {"c": 1}}), &list).expect_err("refused");
    assert_eq!(why(json!([{"op": "add", "path": "/x/y", "value": 1}])), "path is invalid");
    assert_eq!(why(json!([{"op": "add", "path": "/a/2", "value": 1}])), "path is invalid");
    assert_eq!(why(json!([{"op": "add", "path": "/a/ 1", "value": 1}])), "path is invalid");
    assert_eq!(why(json!([{"op": "add", "path": "/a/-3", "value": 1}])), "path is invalid");
    assert_eq!(why(json!([{"op": "remove", "path": "/a/-2"}])), "path is invalid");
    assert_eq!(why(json!([{"op": "remove", "path": "/a/-"}])), "path is invalid");
    assert_eq!(why(json!([{"op": "remove", "path": ""}])), "path is invalid");
    assert_eq!(why(json!([{"op": "replace", "path": "/a/1", "value": 1}])), "path is invalid");
    assert_eq!(why(json!([{"op": "move", "from": "/x", "path": "/y"}])), "\"from\" path is invalid");
    assert_eq!(why(json!([{"op": "copy", "from": "/x/z", "path": "/y"}])), "\"from\" path is invalid");
    assert_eq!(why(json!([{"op": "copy", "from": "/a/1", "path": "/y"}])), "\"from\" path is invalid");
    assert_eq!(
        why(json!([{"op": "move", "from": "/b", "path": "/b/c"}])),
        "cannot move the value inside itself"
    );
    assert_eq!(why(json!([{"op": "test", "path": "/b", "value": {"c": 2}}])), "value did not match");
    let strictly = operations(&json!([{"op": "replace", "path": "/b/d", "value": 1}]));
    let error = patched(json!({"b": {}}), &strictly, Replacing::Existing).expect_err("refused");
    assert_eq!(error.to_string(), "operation '/0' failed at path '/b/d': path is invalid");
    let whole = |value: Value| json!([{"op": "replace", "path": "", "value": value}]);
    assert_eq!(made(json!(1), &whole(json!([2]))), Ok(json!([2])));
    for scalar in [json!(2), json!("a"), json!(null)] {
        let why = made(json!({}), &whole(scalar)).expect_err("refused");
        assert_eq!(why, "replace operation value must be object or array: %!w(<nil>)");
    }
    assert_eq!(patched(json!(1), &operations(&whole(json!(2))), Replacing::Existing), Ok(json!(2)));
}

/// Clients use this to add the first finalizer only if there is none.
#[test]
fn a_member_that_is_not_there_is_null_to_a_test() {
    let test = |path: &str| json!([{"op": "test", "path": path, "value": null}]);
    let target = || json!({"a": {"null": null, "b": 1}, "list": [1]});
    for path in ["/a/none", "/a/null"] {
        assert_eq!(made(target(), &test(path)), Ok(target()), "{path}");
    }
    assert_eq!(made(target(), &test("/a/b")), Err("value did not match".to_owned()));
    for path in ["/none/none", "/list/7", "/a/b/c"] {
        assert_eq!(made(target(), &test(path)), Err("path is invalid".to_owned()), "{path}");
    }
    assert!(patched(target(), &operations(&test("/a/none")), Replacing::Existing).is_err());
}

#[test]
fn the_bytes_of_copies_are_bounded_as_upstream_bounds_them() {
    let target = json!({"data": {"k": "<".repeat(1_000)}});
    let doubled: Vec<Value> =
        (0..40).map(|n| json!({"op": "copy", "from": "", "path": format!("/data/k{n}")})).collect();
    // Go writes `<` with six letters. Each copy doubles the object, and the tenth is one too many.
    let whole = r#"{"data":{"k":""}}"#.len() + 6_000;
    let double = |(sum, size): (usize, usize), _| (sum + size, size + size + r#","k0":"#.len());
    let copied = (0..10).fold((0, whole), double);
    let why = made(target.clone(), &doubled.into()).expect_err("refused");
    let expected = format!(
        "Unable to complete the copy, the accumulated size increase of copy is {}, exceeding the limit 3145728",
        copied.0
    );
    assert_eq!(why, expected);
    let enough: Vec<Value> =
        (0..8).map(|n| json!({"op": "copy", "from": "", "path": format!("/data/k{n}")})).collect();
    assert!(made(target, &enough.into()).is_ok());
}

#[test]
fn nothing_gets_deeper_than_what_can_be_read() {
    let deeper = |from: &str, path: &str| json!({"op": "move", "from": from, "path": path});
    let nested = |depth: usize| (0..depth).fold(json!({}), |inner, _| json!({"a": inner}));
    let target = json!({"one": nested(400), "two": nested(300)});
    let path = format!("/two{}/b", "/a".repeat(300));
    assert_eq!(
        made(target.clone(), &json!([deeper("/one", &path)])),
        Err("the value would be nested deeper than 512 levels".to_owned())
    );
    assert!(made(target.clone(), &json!([deeper("/one", "/two/a/b")])).is_ok());
    // A copy into itself, again and again.
    let copy = json!({"op": "copy", "from": "/one", "path": "/one/b"});
    let copies: Vec<Value> = vec![copy; 112];
    assert!(made(target, &copies.into()).is_err());
    // Siblings that go into one another one by one do not count together.
    let members: serde_json::Map<String, Value> =
        (0..2_000).map(|n| (format!("k{n}"), json!({"v": {}}))).collect();
    let moves: Vec<Value> =
        (0..2_000).map(|n| deeper(&format!("/all/k{n}"), &format!("/all/inner/k{n}"))).collect();
    let mut target = json!({"all": members});
    target["all"]["inner"] = json!({});
    let made = made(target, &moves.into()).expect("applied");
    assert_eq!(made["all"]["inner"]["k1999"], json!({"v": {}}));
}

/// Each of these took minutes or gigabytes: a copy or a sort of everything for every operation.
#[test]
fn the_worst_patches_are_applied_in_time() {
    let adds: Vec<Value> =
        (0..10_000).map(|n| json!({"op": "add", "path": format!("/data/k{n:05}"), "value": "v"})).collect();
    let large: serde_json::Map<String, Value> = (0..60_000).map(|n| (format!("a{n}"), json!(""))).collect();
    let made_of = made(json!({"data": large}), &adds.into()).expect("applied");
    assert_eq!(made_of["data"].as_object().map(serde_json::Map::len), Some(70_000));

    let shuffled: Vec<Value> =
        (0..10_000).map(|_| json!({"op": "move", "from": "/data/0", "path": "/data/150000"})).collect();
    let made_of = made(json!({"data": vec![0; 300_000]}), &shuffled.into()).expect("applied");
    assert_eq!(made_of["data"].as_array().map(Vec::len), Some(300_000));

    let turned: Vec<Value> = (0..10_000)
        .map(|n| json!({"op": "move", "from": format!("/{}", n % 2), "path": format!("/{}", (n + 1) % 2)}))
        .collect();
    let made_of = made(json!({"0": vec![0; 300_000]}), &turned.into()).expect("applied");
    assert_eq!(made_of["0"].as_array().map(Vec::len), Some(300_000));
}
