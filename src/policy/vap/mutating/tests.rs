//! What operations say when they cannot be applied, in the words of the server's library.

use serde_json::{Value, json};

use crate::patch::{Operation, applied, applied_values};

fn operation(op: &str, path: &str, from: &str) -> Operation {
    Operation { op: op.to_owned(), path: path.to_owned(), from: from.to_owned(), value: json!(1) }
}

fn told(op: &str, path: &str, from: &str) -> Result<Value, String> {
    applied(&json!({"a": {"b": 1}, "l": [1], "s": "x"}), &[operation(op, path, from)])
        .map_err(|error| error.to_string())
}

#[test]
fn what_is_missing_is_told_by_its_path() {
    let cases = [
        (("add", "/x/y", ""), "add operation does not apply: doc is missing path: \"/x/y\": missing value"),
        (("add", "", ""), "add operation does not apply: doc is missing path: \"\": missing value"),
        (("add", "/s/y", ""), "add operation does not apply: doc is missing path: \"/s/y\": missing value"),
        (
            ("add", "/l/7", ""),
            "error in add for path: '/l/7': Unable to access invalid index: 7: invalid index referenced",
        ),
        (
            ("add", "/l/x", ""),
            "error in add for path: '/l/x': value was not a proper array index: 'x': strconv.Atoi: parsing \"x\": invalid syntax",
        ),
        (
            ("remove", "/a/x", ""),
            "error in remove for path: '/a/x': Unable to remove nonexistent key: x: missing value",
        ),
        (
            ("replace", "/x/y", ""),
            "replace operation does not apply: doc is missing path: /x/y: missing value",
        ),
        (
            ("replace", "/l/1", ""),
            "replace operation does not apply: doc is missing key: /l/1: missing value",
        ),
        (
            ("move", "/c", "/x/y"),
            "move operation does not apply: doc is missing from path: /x/y: missing value",
        ),
        (
            ("move", "/c", "/x"),
            "error in move for path: 'x': Unable to remove nonexistent key: x: missing value",
        ),
        (
            ("copy", "/x/y", "/a"),
            "copy operation does not apply: doc is missing destination path: /x/y: missing value",
        ),
        (("test", "/x/y", ""), "test operation does not apply: is missing path: /x/y: missing value"),
        (("leap", "/x", ""), "Unexpected kind: leap"),
    ];
    for ((op, path, from), expected) in cases {
        assert_eq!(told(op, path, from), Err(expected.to_owned()), "{op} {path} {from}");
    }
}

#[test]
fn what_stands_before_the_first_slash_says_nothing() {
    assert_eq!(told("add", "x/n", ""), Ok(json!({"a": {"b": 1}, "l": [1], "s": "x", "n": 1})));
}

#[test]
fn a_test_that_fails_says_where() {
    assert!(told("test", "/a/b", "").is_ok());
    for path in ["/s", "/n"] {
        assert_eq!(told("test", path, ""), Err(format!("testing value {path} failed: test failed")));
    }
}

#[test]
fn what_an_object_has_not_is_copied_as_null() {
    let made = json!({"a": {"b": 1}, "l": [1], "s": "x", "n": null});
    assert_eq!(told("copy", "/n", "/none"), Ok(made));
}

#[test]
fn operations_that_lack_something_are_found_out_in_their_turn() {
    let told =
        |operation: Value| applied_values(&json!({"a": 1}), &[operation]).map_err(|error| error.to_string());
    let cases = [
        (json!({"path": "/a"}), "Unexpected kind: unknown"),
        (json!(1), "Unexpected kind: unknown"),
        (json!({"op": "add", "value": 1}), "add operation failed to decode path: missing value"),
        (
            json!({"op": "replace", "value": 1}),
            "replace operation failed to decode path: operation missing path field: missing value",
        ),
        (
            json!({"op": "move", "path": "/b"}),
            "move operation failed to decode from: operation, missing from field: missing value",
        ),
    ];
    for (operation, expected) in cases {
        assert_eq!(told(operation.clone()), Err(expected.to_owned()), "{operation}");
    }
    assert_eq!(told(json!({"op": "add", "path": "/b"})), Ok(json!({"a": 1, "b": null})));
}
