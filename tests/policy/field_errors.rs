//! Field errors print as Kubernetes prints them.

use admit_apimachinery::field_error::{BadValue, FieldError, aggregate};
use admit_policy::Path;
use serde_json::json;

#[test]
fn lines_are_kubernetes() {
    let cases = [
        (FieldError::invalid("spec.a", 3, "must be even"), "spec.a: Invalid value: 3: must be even"),
        (
            FieldError::invalid("spec.a", json!("x\n\"y\""), "bad"),
            r#"spec.a: Invalid value: "x\n\"y\"": bad"#,
        ),
        (FieldError::invalid("a", json!(1.5), ""), "a: Invalid value: 1.5"),
        (FieldError::invalid("a", json!(1e21), ""), "a: Invalid value: 1e+21"),
        (FieldError::invalid("a", json!(1_234_567.5), ""), "a: Invalid value: 1.2345675e+06"),
        (
            FieldError::invalid("a", json!({"b": 1, "a": "<"}), "d"),
            r#"a: Invalid value: {"a":"\u003c","b":1}: d"#,
        ),
        (FieldError::invalid("a", BadValue::Omitted, "failed rule: x"), "a: Invalid value: failed rule: x"),
        (FieldError::required("spec", ""), "spec: Required value"),
        (FieldError::forbidden("a", "no"), "a: Forbidden: no"),
        (FieldError::duplicate("a[1]", json!({"k": "v"})), r#"a[1]: Duplicate value: {"k":"v"}"#),
        (FieldError::too_long("a", 1), "a: Too long: may not be more than 1 byte"),
        (FieldError::too_long("a", 5), "a: Too long: may not be more than 5 bytes"),
        (FieldError::too_many("a", 3, 1), "a: Too many: 3: must have at most 1 item"),
        (
            FieldError::not_supported("a", "C", ["A", "B"]),
            r#"a: Unsupported value: "C": supported values: "A", "B""#,
        ),
    ];
    for (error, line) in cases {
        assert_eq!(error.to_string(), line);
    }
}

#[test]
fn a_cause_has_reason_field_and_message_apart() {
    let cause = FieldError::required("spec.name", "give one").cause();
    assert_eq!((&*cause.reason, cause.field.as_str()), ("FieldValueRequired", "spec.name"));
    assert_eq!(cause.message, "Required value: give one");
}

#[test]
fn several_errors_stand_in_brackets_and_equal_ones_once() {
    let error = |field| FieldError::required(field, "");
    assert_eq!(aggregate(&[error("a")]), "a: Required value");
    assert_eq!(aggregate(&[error("a"), error("b"), error("a")]), "[a: Required value, b: Required value]");
}

#[test]
fn paths_print_as_field_paths() {
    let spec = Path::Nil.child("spec");
    let labels = spec.child("labels");
    let items = spec.child("items");
    assert_eq!(Path::Nil.to_string(), "<nil>");
    assert_eq!(labels.key("a/b").to_string(), "spec.labels[a/b]");
    assert_eq!(items.index(3).child("name").to_string(), "spec.items[3].name");
}
