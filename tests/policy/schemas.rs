//! Schemas check, default and prune documents as the API server does. The recorded corpora hold the bulk; here stand
//! the cases that explain a rule.

use admit_apimachinery::findings::FieldErrors;
use admit_policy::schema::{self, Schema};
use admit_policy::{Pace, Path};
use serde_json::{Value, json};

/// One that cannot be read checks nothing, which no test here expects of all its rows.
fn schema_of(schema: &Value) -> Schema {
    schema::parse(schema, &Path::Nil).unwrap_or_default()
}

fn errors(schema: &Value, value: &Value) -> Vec<String> {
    schema::validate(value, &schema_of(schema), None, &Path::Nil, &Pace::default())
        .iter()
        .map(ToString::to_string)
        .collect()
}

#[test]
fn values_are_checked_with_the_servers_words() {
    let object = |property: Value| json!({"type": "object", "properties": {"a": property}});
    let cases = [
        (
            json!({"type": "string"}),
            json!({"a": 1}),
            r#"a: Invalid value: "integer": a in body must be of type string: "integer""#,
        ),
        (
            json!({"x-kubernetes-int-or-string": true}),
            json!({"a": {}}),
            r#"a: Invalid value: "object": a in body must be of type integer,string: "object""#,
        ),
        (
            json!({"type": "string", "maxLength": 2}),
            json!({"a": "äöü"}),
            "a: Too long: may not be more than 2 bytes",
        ),
        (
            json!({"type": "string", "pattern": r"^\d+$"}),
            json!({"a": "٣"}),
            r#"a: Invalid value: "٣": a in body should match '^\d+$'"#,
        ),
        (
            json!({"type": "integer", "maximum": 10, "exclusiveMaximum": true}),
            json!({"a": 10}),
            "a: Invalid value: 10: a in body should be less than 10",
        ),
        (
            json!({"type": "string", "enum": ["x", "y"]}),
            json!({"a": "z"}),
            r#"a: Unsupported value: "z": supported values: "x", "y""#,
        ),
        (
            json!({"type": "integer", "format": "int32"}),
            json!({"a": 4_294_967_296_i64}),
            r#"<nil>: Invalid value: "": Checked value must be of type integer with format int32 in a"#,
        ),
        (
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            json!({"a": {"x/y": 1}}),
            r#"a.x/y: Invalid value: "integer": a.x/y in body must be of type string: "integer""#,
        ),
    ];
    for (property, value, line) in cases {
        assert_eq!(errors(&object(property), &value), [line], "{value}");
    }
}

#[test]
fn the_alternative_that_passed_most_checks_is_told() {
    let schema = json!({"type": "object", "properties": {"a": {
        "type": "object",
        "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}},
        "anyOf": [
            {"required": ["y"]},
            {"properties": {"x": {"maximum": 1}}, "required": ["x"]},
        ],
    }}});
    assert_eq!(
        errors(&schema, &json!({"a": {"x": 5}})),
        [
            r#"<nil>: Invalid value: "": "a" must validate at least one schema (anyOf)"#,
            "a.x: Invalid value: 5: a.x in body should be less than or equal to 1",
        ]
    );
}

#[test]
fn formats_accept_what_go_accepts() {
    let cases = [
        ("date-time", "2024-02-29T23:59:59Z", true),
        ("date-time", "2023-02-29T23:59:59Z", false),
        ("duration", "1h30m", true),
        ("duration", "3 seconds", true),
        ("duration", "soon", false),
        ("ipv4", "010.0.0.1", true),
        ("ipv6", "::ffff:1.2.3.4", true),
        ("cidr", "10.0.0.0/33", false),
        ("uri", "http://a b", false),
        ("uri", "/path", true),
        ("email", "Name <a@b.c>", true),
        ("email", "a..b@c", false),
        ("mac", "01-23-45-67-89-ab", true),
        ("byte", "", false),
        ("isbn", "978-0321751041", true),
        ("creditcard", "4111 1111 1111 1111", true),
        ("uuid4", "6ba7b810-9dad-11d1-80b4-00c04fd430c8", false),
        ("hostname", "a.b", false),
        ("made-up", "anything", true),
    ];
    for (format, text, valid) in cases {
        let schema = json!({"type": "object", "properties": {"a": {"type": "string", "format": format}}});
        assert_eq!(errors(&schema, &json!({"a": text})).is_empty(), valid, "{format}: {text}");
    }
}

#[test]
fn unknown_fields_are_removed_and_named() {
    let schema = schema_of(&json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "items": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                     "properties": {"strict": {"type": "object", "properties": {}}}},
        }},
    }}));
    let mut document = json!({
        "apiVersion": "v1", "kind": "K", "metadata": {"name": "n"},
        "spec": {"items": [{"a": "x", "b": 1}], "free": {"kept": 1, "strict": {"gone": 1}}, "typo": true},
    });
    let unknown = schema::prune(&mut document, &schema, &Pace::default());
    assert_eq!(unknown, ["spec.free.strict.gone", "spec.items[0].b", "spec.typo"]);
    assert_eq!(document["spec"], json!({"items": [{"a": "x"}], "free": {"kept": 1, "strict": {}}}));
}

#[test]
fn defaults_fill_objects_that_were_defaulted_and_replace_nulls() {
    let schema = schema_of(&json!({"type": "object", "properties": {
        "outer": {"type": "object", "default": {}, "properties": {"inner": {"type": "integer", "default": 7}}},
        "none": {"type": "string"},
        "kept": {"type": "string", "nullable": true, "default": "x"},
    }}));
    let mut document = json!({"none": null, "kept": null});
    schema::drop_nulls(&mut document, Some(&schema), &Pace::default());
    schema::default(&mut document, &schema, &Pace::default());
    assert_eq!(document, json!({"kept": null, "outer": {"inner": 7}}));
}

#[test]
fn duplicates_are_told_once_at_their_second_appearance() {
    let schema = schema_of(&json!({"type": "object", "properties": {
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "numbers": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "number"}},
        "map": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                "items": {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer"}}}},
    }}));
    // A whole double is no integer here, and both zeros are the same double.
    let document = json!({
        "set": ["a", "b", "a", "a"], "numbers": [0, 0.0, -0.0, 1, 1.0], "map": [{"k": "x", "v": 1}, {"k": "x", "v": 2}],
    });
    let mut found = FieldErrors::default();
    schema::validate_lists(&document, &schema, &Path::Nil, &mut found, &Pace::default());
    let lines: Vec<_> = found.into_vec().iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            r#"set[2]: Duplicate value: "a""#,
            "numbers[2]: Duplicate value: -0",
            r#"map[1]: Duplicate value: {"k":"x"}"#
        ]
    );
}
