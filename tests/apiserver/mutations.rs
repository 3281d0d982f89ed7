//! What `mutations.json` says of MutatingAdmissionPolicies: the policies that are stored in a fresh server, and requests
//! with what is to be seen in their answers, as `answers` reads them. The facts were read off apiserver
//! `pkg/admission/plugin/policy/mutating` of Kubernetes 1.36 and its tests.
//!
//! A policy is `{"name", "on": "group/resource", "apply" or "patch": expression}`, or has a list of `mutations`; anything
//! else in it is a field of its specification, but for `binding`, which is that of its binding.

use std::fmt::Write as _;

use admit_apiserver::{AdmissionPlugins, Server};
use serde_json::{Value, json};

use crate::answers::{check, send};
use crate::harness::{Answer, get, post};

const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";

/// Stores a policy and its binding; the answers in this order.
pub async fn store(server: &Server, policy: &Value) -> [Answer; 2] {
    let name = &policy["name"];
    let mut spec = json!({"reinvocationPolicy": "Never"});
    for (field, value) in policy.as_object().unwrap() {
        match field.as_str() {
            "name" | "binding" => {}
            "on" => {
                let (group, resource) = value.as_str().unwrap().split_once('/').unwrap();
                spec["matchConstraints"] = json!({"resourceRules": [{"apiGroups": [group], "apiVersions": ["*"],
                    "operations": ["CREATE", "UPDATE", "CONNECT"], "resources": [resource]}]});
            }
            "apply" => {
                spec["mutations"] =
                    json!([{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": value}}]);
            }
            "patch" => {
                spec["mutations"] = json!([{"patchType": "JSONPatch", "jsonPatch": {"expression": value}}]);
            }
            field => spec[field] = value.clone(),
        }
    }
    let mut binding = json!({"policyName": name});
    for (field, value) in policy["binding"].as_object().into_iter().flatten() {
        binding[field] = value.clone();
    }
    let metadata = json!({"name": name});
    let policy = json!({"metadata": metadata, "spec": spec});
    let binding = json!({"metadata": metadata, "spec": binding});
    [
        post(server, &format!("{GROUP}/mutatingadmissionpolicies"), &policy).await,
        post(server, &format!("{GROUP}/mutatingadmissionpolicybindings"), &binding).await,
    ]
}

#[tokio::test]
async fn objects_are_changed_as_by_the_reference() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("mutations.json")).unwrap();
    let mut failed = String::new();
    for case in &cases {
        let server = Server::builder().build().await.unwrap();
        for step in case["before"].as_array().into_iter().flatten() {
            send(&server, step).await;
        }
        for policy in case["policies"].as_array().into_iter().flatten() {
            for answer in store(&server, policy).await {
                if (answer.status, answer.warnings.len()) != (201, 0) {
                    writeln!(failed, "{}: {} {:?}", case["name"], answer.message(), answer.warnings).unwrap();
                }
            }
        }
        for step in case["steps"].as_array().unwrap() {
            let found = send(&server, step).await;
            if let Err(why) = check(step, &found) {
                writeln!(failed, "{}: {}: {why}", case["name"], step["do"]).unwrap();
                break;
            }
        }
    }
    assert!(failed.is_empty(), "{failed}");
}

#[tokio::test]
async fn the_plugin_can_be_off() {
    let plugins = AdmissionPlugins::new([""; 0], ["MutatingAdmissionPolicy"]).unwrap();
    let server = Server::builder().admission_plugins(plugins).build().await.unwrap();
    let policy = json!({"name": "p", "on": "/configmaps", "apply": "Object{data: {'a': 'b'}}"});
    store(&server, &policy).await;
    let made =
        post(&server, "/api/v1/namespaces/default/configmaps", &json!({"metadata": {"name": "a"}})).await;
    assert_eq!((made.status, made.body.get("data")), (201, None), "{made:?}");
}

#[tokio::test]
async fn a_policy_that_changes_or_goes_is_in_force_at_once() {
    let server = Server::builder().build().await.unwrap();
    store(&server, &json!({"name": "p", "on": "/configmaps", "apply": "Object{data: {'a': 'b'}}"})).await;
    let maps = "/api/v1/namespaces/default/configmaps";
    let made = |name: &'static str| json!({"metadata": {"name": name}});
    assert_eq!(post(&server, maps, &made("a")).await.body["data"], json!({"a": "b"}));
    let at = format!("{GROUP}/mutatingadmissionpolicies/p");
    let wanted = json!({"spec": {"mutations": [{"patchType": "ApplyConfiguration",
        "applyConfiguration": {"expression": "Object{data: {'a': 'c'}}"}}]}});
    assert_eq!(crate::harness::merge(&server, &at, &wanted).await.status, 200);
    assert_eq!(post(&server, maps, &made("b")).await.body["data"], json!({"a": "c"}));
    crate::harness::delete(&server, &at, None).await;
    assert_eq!(post(&server, maps, &made("c")).await.body.get("data"), None);
    let stored = get(&server, &format!("{maps}/b")).await;
    assert_eq!(stored.body["data"], json!({"a": "c"}), "what was stored stays");
}

const POLICIES: &str = "
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: labels}
spec:
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules: [{apiGroups: [apps, x.dev], apiVersions: [v1], operations: [CREATE], resources: [deployments, widgets]}]
  matchConditions: [{name: named, expression: object.metadata.name != 'other'}]
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration: {expression: \"Object{metadata: Object.metadata{labels: {'team': 'a'}}}\"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: labels}
spec: {policyName: labels}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: counts}
spec:
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules: [{apiGroups: [x.dev], apiVersions: [v1], operations: [CREATE], resources: [widgets]}]
  mutations:
  - patchType: JSONPatch
    jsonPatch: {expression: \"[JSONPatch{op: 'add', path: '/spec/size', value: object.spec.?size.orValue(0) + 1}]\"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: counts}
spec: {policyName: counts}
";

#[test]
fn suites_say_what_objects_become() {
    let options = admit_policy::LoadOptions::default();
    let size = "spec: {type: object, required: [size], properties: {size: {type: integer}}}";
    let widgets = testing::definition_text("widgets.x.dev", "Widget", "Namespaced", size);
    let files = [("p.yaml", POLICIES), ("widgets.yaml", &widgets)];
    let set = admit_policy::PolicySet::load_files(files, options).unwrap();
    let set = set.knowing(&admit_apiserver::BuiltinKinds);
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "namespace": "n"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
    let mut other = deployment.clone();
    other["metadata"]["name"] = "other".into();
    let widget = json!({"apiVersion": "x.dev/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": "n"}, "spec": {}});
    let labels = json!({"metadata": {"labels": {"team": "a"}}});
    let cases = [
        (&deployment, json!({"outcome": "allow", "object": labels, "idempotent": true}), ""),
        (&deployment, json!({"outcome": "allow", "object": {"spec": {"replicas": 1, "paused": null}}}), ""),
        (
            &deployment,
            json!({"outcome": "allow", "object": {"metadata": {"labels": {"team": "b"}}}}),
            "object",
        ),
        (&other, json!({"outcome": "unmatched", "object": {"metadata": {"labels": null}}}), ""),
        // Invalid as it is sent, and valid as policies make it.
        (&widget, json!({"outcome": "allow", "object": {"spec": {"size": 1}}}), ""),
        (&widget, json!({"outcome": "allow", "idempotent": true}), "idempotent"),
    ];
    let named = |(at, (object, expect, _)): (usize, &(&Value, Value, &str))| json!({"name": at.to_string(), "object": object, "expect": expect});
    let document = json!({"apiVersion": "admit/v1", "kind": "Suite",
        "cases": cases.iter().enumerate().map(named).collect::<Vec<_>>()});
    let suite = admit_policy::suite::Suite::decode(&document).unwrap();
    for (case, (_, expect, mismatch)) in suite.cases.iter().zip(&cases) {
        let result = admit_policy::suite::run(case, &set);
        let found: Vec<&str> = result.mismatches.iter().map(|mismatch| mismatch.what).collect();
        assert_eq!(found.join(","), *mismatch, "{expect}: {result:?}");
    }
}
