//! AdmissionReviews that are right and wrong.

use admit_policy::request::{Operation, Request};
use serde_json::{Value, json};

fn review(changes: &[(&str, Value)]) -> Vec<u8> {
    let mut review = json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u-1",
            "kind": {"group": "apps", "version": "v1", "kind": "Deployment"},
            "resource": {"group": "apps", "version": "v1", "resource": "deployments"},
            "requestKind": {"group": "apps", "version": "v1", "kind": "Deployment"},
            "name": "web",
            "namespace": "team",
            "operation": "UPDATE",
            "userInfo": {"username": "alice", "extra": {"scopes": ["a", "b"]}},
            "object": {"metadata": {"name": "web"}},
            "oldObject": null,
            "dryRun": true,
        },
    });
    for (pointer, value) in changes {
        *review.pointer_mut(pointer).expect("the field is there") = value.clone();
    }
    review.to_string().into_bytes()
}

#[test]
fn everything_is_read() {
    let request = Request::from_review_json(&review(&[])).expect("the review is right");
    assert_eq!(request.operation, Operation::Update);
    assert_eq!(request.kind.api_version(), "apps/v1");
    assert_eq!(request.request_resource, request.resource, "what is left out is as the resource");
    assert_eq!(request.user.extra["scopes"], ["a", "b"]);
    assert!(request.old_object.is_none(), "null is absent");
    assert!(request.dry_run);
}

#[test]
fn what_is_wrong_is_named_with_the_uid_where_there_is_one() {
    let cases = [
        (
            ("/apiVersion", json!("admission.k8s.io/v1beta1")),
            "apiVersion must be `admission.k8s.io/v1`, not `admission.k8s.io/v1beta1`",
        ),
        (("/kind", json!("Review")), "kind must be `AdmissionReview`, not `Review`"),
        (
            ("/request/operation", json!("PATCH")),
            "request.operation: `PATCH` is not one of CREATE, UPDATE, DELETE, CONNECT",
        ),
        (("/request/resource", json!({})), "request.resource.version: must be specified"),
        (("/request/resource/resource", json!("")), "request.resource.resource: must be specified"),
        (("/request/kind", Value::Null), "request.kind.version: must be specified"),
        (("/request/name", json!(7)), "request.name: must be a string, not a number"),
        (("/request/userInfo/extra", json!([])), "request.userInfo.extra: must be an object, not a list"),
    ];
    for (change, expected) in cases {
        let error = Request::from_review_json(&review(&[change])).expect_err(expected);
        assert_eq!((error.to_string().as_str(), error.uid.as_deref()), (expected, Some("u-1")));
    }
    let error = Request::from_review_json(&review(&[("/request", Value::Null)])).expect_err("no request");
    assert_eq!((error.to_string().as_str(), error.uid), ("request: must be specified", None));
    let error = Request::from_review_json(b"{").expect_err("no JSON");
    assert!(error.to_string().starts_with("body is not JSON: "), "{error}");
}
