//! What `/mutate` answers: a patch that makes the object what its policies make of it, and nothing where they make nothing.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::StatusCode;
use json_patch::{Patch, patch};
use serde_json::{Value, json};

use super::support::{config_map, definition, policy, review, server};

/// A policy that changes ConfigMaps by `mutation`, with a binding of its name.
fn mutating(name: &str, failure_policy: &str, mutation: &Value) -> Vec<Value> {
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]});
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]}, "failurePolicy": failure_policy,
            "reinvocationPolicy": "Never", "mutations": [mutation],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": name}, "spec": {"policyName": name},
    });
    vec![policy, binding]
}

fn applying(expression: &str) -> Value {
    json!({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}})
}

fn patching(expression: &str) -> Value {
    json!({"patchType": "JSONPatch", "jsonPatch": {"expression": expression}})
}

/// The creation of this ConfigMap.
fn creation(object: &Value) -> String {
    review(&json!({
        "uid": "u", "operation": "CREATE", "name": "c", "namespace": "n",
        "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
        "resource": {"group": "", "version": "v1", "resource": "configmaps"},
        "object": object,
    }))
}

fn written() -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "n"},
        "data": {"a/b": "1", "c": "2"},
    })
}

/// The object that an API server makes of the answer: the patch applied to what was sent.
fn made(response: &Value) -> Value {
    let mut object = written();
    let Some(text) = response.get("patch") else {
        assert_eq!(response.get("patchType"), None, "{response}");
        return object;
    };
    assert_eq!(response["patchType"], "JSONPatch");
    let text = STANDARD.decode(text.as_str().unwrap()).unwrap();
    let operations: Patch = serde_json::from_slice(&text).unwrap();
    patch(&mut object, &operations).unwrap();
    object
}

#[tokio::test]
async fn policies_answer_with_a_patch_that_makes_their_object() {
    let labelled = patching(r#"[JSONPatch{op: "add", path: "/metadata/labels", value: {"team": "a"}}]"#);
    let escaped = patching(r#"[JSONPatch{op: "remove", path: "/data/" + jsonpatch.escapeKey("a/b")}]"#);
    let filled = applying(r#"Object{data: {"d": "3"}}"#);
    let mut expected = written();
    expected["metadata"]["labels"] = json!({"team": "a"});
    expected["data"] = json!({"c": "2", "d": "3"});
    let policies =
        [mutating("1", "Fail", &labelled), mutating("2", "Fail", &escaped), mutating("3", "Fail", &filled)];
    let answer = server(&policies).post("/mutate", &creation(&written())).await;
    assert_eq!(answer.code, StatusCode::OK);
    let response = &answer.json["response"];
    assert_eq!((&response["uid"], &response["allowed"]), (&json!("u"), &json!(true)), "{response}");
    assert_eq!(made(response), expected);
}

#[tokio::test]
async fn what_nothing_changes_has_no_patch() {
    let same = patching(r#"[JSONPatch{op: "test", path: "/data/c", value: "2"}]"#);
    let none = applying("Object{}");
    let others = policy("p", "false");
    for documents in
        [vec![], vec![mutating("m", "Fail", &same)], vec![mutating("m", "Fail", &none)], vec![others]]
    {
        let answer = server(&documents).post("/mutate", &creation(&written())).await;
        assert_eq!(answer.json["response"], json!({"uid": "u", "allowed": true}), "{documents:?}");
    }
    // Rules of definitions are judged where objects are, not where they are made.
    let answer = server(&[definition()]).post("/mutate", &config_map("u")).await;
    assert_eq!(answer.json["response"], json!({"uid": "u", "allowed": true}));
}

/// A policy that cannot be applied denies or is passed over, as it says; those that can still change the object.
#[tokio::test]
async fn a_policy_that_fails_denies_unless_it_is_to_be_ignored() {
    let broken = patching(r#"[JSONPatch{op: "remove", path: "/data/nothing"}]"#);
    let filled = mutating("z", "Fail", &applying(r#"Object{data: {"d": "3"}}"#));
    let failing = [mutating("broken", "Fail", &broken), filled.clone()];
    let answer = server(&failing).post("/mutate", &creation(&written())).await;
    let response = &answer.json["response"];
    assert_eq!(response["allowed"], false, "{response}");
    assert_eq!(response.get("patch"), None);
    let message = response["status"]["message"].as_str().unwrap();
    assert!(message.contains("broken"), "{message}");

    let ignoring = [mutating("broken", "Ignore", &broken), filled];
    let answer = server(&ignoring).post("/mutate", &creation(&written())).await;
    let mut expected = written();
    expected["data"]["d"] = json!("3");
    assert_eq!(made(&answer.json["response"]), expected);
}

#[tokio::test]
async fn a_malformed_request_is_denied_where_objects_are_changed_as_elsewhere() {
    let answer = server(&[]).post("/mutate", &review(&json!({"uid": "u", "operation": "PATCH"}))).await;
    assert_eq!(answer.json["response"]["allowed"], false);
    assert_eq!(answer.json["response"]["status"]["code"], 400);
}
