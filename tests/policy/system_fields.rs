//! What a server adds to objects before policies that validate see them: in cases of suites, and where manifests are applied.

use std::sync::Arc;

use admit_policy::apply::{Options, Rehearsal, pair};
use admit_policy::suite::{Suite, run};
use admit_policy::{PolicySet, Request, with_system_fields};
use serde_json::{Value, json};

use crate::support::{set, widgets};

const VERSIONS: &str = "  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer}}}
          status: {type: object, properties: {ready: {type: boolean}}}
";

/// Beside the definition, a policy that lets through what a server wrote its part into.
fn judging(expression: &str) -> PolicySet {
    let policy = format!(
        "
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {{name: told}}
spec:
  matchConstraints:
    resourceRules: [{{apiGroups: [example.com], apiVersions: ['*'], operations: [CREATE, UPDATE], resources: [widgets]}}]
  validations: [{{expression: \"{expression}\", messageExpression: string(object.metadata.generation)}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {{name: told}}
spec: {{policyName: told, validationActions: [Deny]}}
"
    );
    set(&format!("{}{policy}", widgets(VERSIONS)))
}

fn widget(metadata: &Value, size: i64, ready: bool) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata, "spec": {"size": size}, "status": {"ready": ready}})
}

const CREATED: &str = "has(object.metadata.uid) && object.metadata.generation == 1 && \
    timestamp(object.metadata.creationTimestamp) <= timestamp('2100-01-01T00:00:00Z') && !has(object.metadata.deletionTimestamp)";

#[test]
fn created_objects_have_what_a_server_gives_them() {
    let set = judging(CREATED);
    let object =
        widget(&json!({"name": "a", "generation": 7, "deletionTimestamp": "2026-01-01T00:00:00Z"}), 1, false);
    let paired = pair(&[Arc::new(object.clone())], &[], set.documents(), "default").expect("it pairs");
    let applied = Rehearsal::new(&set, [], Options::default()).apply(&paired.pairs[0]);
    assert_eq!(applied.refusal, None);
    let suite = Suite::decode(&json!({
        "apiVersion": "admit/v1", "kind": "Suite",
        "cases": [
            {"name": "a", "object": object, "policies": ["told"], "expect": "allow"},
            // What a case expects of the object is what policies made of it.
            {"name": "b", "object": widget(&json!({"name": "b"}), 1, false),
                "expect": {"outcome": "allow", "object": {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "b"}, "spec": {"size": 1}}}},
        ],
    }));
    for case in suite.expect("it is a suite").cases {
        let result = run(&case, &set);
        assert!(result.passed(), "{}: {:?}", case.name, result.mismatches);
    }
}

/// The generation as a policy sees it, of an update.
fn generation(old: &Value, new: &Value, subresource: &str) -> (i64, i64) {
    let set = judging("true");
    let request = json!({
        "kind": {"group": "example.com", "version": "v1", "kind": "Widget"},
        "resource": {"group": "example.com", "version": "v1", "resource": "widgets"},
        "subResource": subresource, "operation": "UPDATE", "name": "a", "object": new, "oldObject": old,
    });
    let mut request = Request::from_value(&request).expect("it is a request");
    with_system_fields(&mut request, set.documents(), None);
    let of = |object: Option<admit_policy::Object<'_>>| {
        object
            .expect("there is one")
            .value()
            .pointer("/metadata/generation")
            .and_then(Value::as_i64)
            .expect("it has one")
    };
    (of(request.old_object), of(request.object))
}

#[test]
fn generations_count_changes_of_what_is_specified() {
    let bare = json!({"name": "a"});
    let (one, other) = (widget(&bare, 1, false), widget(&bare, 2, false));
    assert_eq!(generation(&one, &one, ""), (1, 1));
    assert_eq!(generation(&one, &other, ""), (1, 2));
    assert_eq!(generation(&one, &widget(&bare, 1, true), ""), (1, 1), "the status does not count");
    assert_eq!(generation(&one, &widget(&bare, 1, true), "status"), (1, 1));
    let live = widget(&json!({"name": "a", "generation": 4, "uid": "u"}), 1, false);
    assert_eq!(generation(&live, &other, ""), (4, 5));
}

#[test]
fn updated_objects_stay_who_they_are() {
    let set = judging(
        "object.metadata.uid == oldObject.metadata.uid && object.metadata.creationTimestamp == oldObject.metadata.creationTimestamp",
    );
    let (old, new) = (widget(&json!({"name": "a"}), 1, false), widget(&json!({"name": "a"}), 2, false));
    let paired = pair(&[Arc::new(new)], &[Arc::new(old)], set.documents(), "default").expect("they pair");
    let applied = Rehearsal::new(&set, [], Options::default()).apply(&paired.pairs[0]);
    assert_eq!(applied.refusal, None);
}
