//! Writes of the status: what of the metadata they change, kind by kind, as kube-apiserver v1.36.2 does. A rule about labels
//! that looks at the main path alone must not be got round by the other where the reference does not let it.

use admit_apiserver::Server;
use serde_json::{Value, json};

use crate::harness::{answer, get, merge, post, send};

const LABELS: &str = "labels";
const ANNOTATIONS: &str = "annotations";
const FINALIZERS: &str = "finalizers";
const OWNERS: &str = "ownerReferences";
const ALL: [&str; 4] = [LABELS, ANNOTATIONS, FINALIZERS, OWNERS];

/// A collection, an object of it, and what writes of its status keep.
fn cases() -> Vec<(&'static str, Value, &'static [&'static str])> {
    let container = json!({"name": "c", "image": "registry.example/x:1"});
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}});
    let workload = json!({"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}});
    vec![
        ("/apis/apps/v1/namespaces/default/deployments", workload.clone(), &[LABELS]),
        ("/apis/apps/v1/namespaces/default/daemonsets", workload.clone(), &[]),
        ("/apis/apps/v1/namespaces/default/replicasets", workload, &[]),
        ("/api/v1/namespaces/default/pods", json!({"spec": {"containers": [container]}}), &[OWNERS]),
        ("/api/v1/namespaces", json!({}), &[]),
        ("/api/v1/nodes", json!({}), &[]),
        ("/api/v1/namespaces/default/services", json!({"spec": {"ports": [{"port": 1}]}}), &[]),
        (
            "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
            json!({"spec": {"validations": [{"expression": "true"}], "matchConstraints": {"resourceRules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]}}}),
            &ALL,
        ),
        (
            "/apis/storage.k8s.io/v1/volumeattachments",
            json!({"spec": {"attacher": "a.example.com", "nodeName": "n", "source": {"persistentVolumeName": "v"}}}),
            &ALL,
        ),
        (
            "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations",
            json!({"spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}}),
            &ALL,
        ),
    ]
}

fn changed_metadata() -> Value {
    json!({
        LABELS: {"new": "label"}, ANNOTATIONS: {"new": "annotation"}, FINALIZERS: ["example.com/new"],
        OWNERS: [{"apiVersion": "v1", "kind": "ConfigMap", "name": "new", "uid": "u"}]
    })
}

/// Fields of the metadata that hold what a write of the status said.
fn taken_over(object: &Value) -> Vec<&'static str> {
    let wanted = changed_metadata();
    let holds = |field: &&str| match (&object["metadata"][*field], &wanted[*field]) {
        // The server adds labels of its own to some.
        (Value::Object(found), Value::Object(wanted)) => {
            wanted.iter().all(|(key, value)| found.get(key) == Some(value))
        }
        (found, wanted) => found == wanted,
    };
    ALL.into_iter().filter(holds).collect()
}

#[tokio::test]
async fn a_write_of_the_status_leaves_what_the_kind_keeps() {
    let server = Server::builder().build().await.unwrap();
    for (collection, mut object, keeps) in cases() {
        for (name, patches) in [("put", false), ("patched", true)] {
            object["metadata"] = json!({"name": name, LABELS: {"old": "label"}});
            let created = post(&server, collection, &object).await;
            assert_eq!(created.status, 201, "{collection}: {}", created.message());
            let (path, spec) = (format!("{collection}/{name}"), created.body["spec"].clone());
            let status = format!("{path}/status");
            let answered = if patches {
                merge(&server, &status, &json!({"metadata": changed_metadata(), "spec": null})).await
            } else {
                let mut wanted = created.body;
                for (field, value) in changed_metadata().as_object().unwrap() {
                    wanted["metadata"][field] = value.clone();
                }
                wanted["spec"]["paused"] = true.into();
                answer(send(&server, "PUT", &status, "application/json", Some(&wanted)).await).await
            };
            assert_eq!(answered.status, 200, "{status}: {}", answered.message());
            let stored = get(&server, &path).await.body;
            let changed: Vec<&str> = ALL.into_iter().filter(|field| !keeps.contains(field)).collect();
            assert_eq!(taken_over(&stored), changed, "{status}");
            assert_eq!(stored["spec"], spec, "{status}");
            if collection.ends_with("daemonsets") {
                let generation = &stored["metadata"][ANNOTATIONS]["deprecated.daemonset.template.generation"];
                assert_eq!(generation, "1", "{status}: it stands for a part of the specification");
            }
        }
    }
}

/// What a write of the status does not change, it does not own either.
#[tokio::test]
async fn a_status_that_is_applied_owns_nothing_that_the_kind_keeps() {
    let server = Server::builder().build().await.unwrap();
    for (collection, mut object, keeps) in cases() {
        object["metadata"] = json!({"name": "applied"});
        let created = post(&server, collection, &object).await.body;
        let (api_version, kind) = (&created["apiVersion"], &created["kind"]);
        let applied = json!({"apiVersion": api_version, "kind": kind, "metadata": changed_metadata()});
        let path = format!("{collection}/applied/status?fieldManager=other");
        let answered =
            answer(send(&server, "PATCH", &path, "application/apply-patch+yaml", Some(&applied)).await).await;
        assert_eq!(answered.status, 200, "{path}: {}", answered.message());
        let managers = answered.body["metadata"]["managedFields"].as_array().unwrap();
        let other = managers.iter().find(|entry| entry["manager"] == "other");
        let owned = other.map(|entry| entry["fieldsV1"].to_string()).unwrap_or_default();
        for field in ALL {
            assert_eq!(
                owned.contains(&format!("\"f:{field}\"")),
                !keeps.contains(&field),
                "{path}: {field}: {owned}"
            );
        }
    }
}
