//! What plugins of kube-apiserver fill in: priorities, runtime classes, and classes that are the default.

use admit_apiserver::Server;
use serde_json::{Value, json};

use crate::harness::{delete, get, post};

const PODS: &str = "/api/v1/namespaces/default/pods";
const PRIORITIES: &str = "/apis/scheduling.k8s.io/v1/priorityclasses";

fn pod(members: Value) -> Value {
    let mut spec = json!({"containers": [{"name": "c", "image": "i"}]});
    spec.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    json!({"metadata": {"generateName": "p-"}, "spec": spec})
}

#[tokio::test]
async fn pods_have_the_priority_of_their_class() {
    let server = Server::builder().build().await.unwrap();
    let missing = post(&server, PODS, &pod(json!({"priorityClassName": "nope"}))).await;
    let told = "pods \"p-\" is forbidden: no PriorityClass with name nope was found";
    assert_eq!((missing.status, missing.message()), (403, told));
    let given = post(&server, PODS, &pod(json!({"priority": 5}))).await;
    assert_eq!(given.status, 403);
    assert!(given.message().contains("the integer value of priority (5) must not be provided in pod spec"));
    let of_system =
        post(&server, PODS, &pod(json!({"priorityClassName": "system-node-critical"}))).await.body;
    assert_eq!(of_system["spec"]["priority"], 2_000_001_000);
    let class = |name: &str| json!({"metadata": {"name": name}, "value": 7, "globalDefault": true});
    assert_eq!(post(&server, PRIORITIES, &class("low")).await.status, 201);
    let second = post(&server, PRIORITIES, &class("other")).await;
    assert_eq!(second.status, 403);
    assert!(
        second
            .message()
            .ends_with("PriorityClass low is already marked as default. Only one default can exist")
    );
    let spec = post(&server, PODS, &pod(json!({}))).await.body["spec"].clone();
    assert_eq!((&spec["priorityClassName"], &spec["priority"]), (&json!("low"), &json!(7)));
}

#[tokio::test]
async fn a_runtime_class_adds_its_overhead_and_its_nodes() {
    let server = Server::builder().build().await.unwrap();
    let missing = post(&server, PODS, &pod(json!({"runtimeClassName": "nope"}))).await;
    assert!(missing.message().ends_with("pod rejected: RuntimeClass \"nope\" not found"));
    let class = json!({
        "metadata": {"name": "slow"}, "handler": "slow", "overhead": {"podFixed": {"cpu": "1"}},
        "scheduling": {"nodeSelector": {"runtime": "slow"}}
    });
    assert_eq!(post(&server, "/apis/node.k8s.io/v1/runtimeclasses", &class).await.status, 201);
    let spec = post(&server, PODS, &pod(json!({"runtimeClassName": "slow"}))).await.body["spec"].clone();
    assert_eq!((&spec["overhead"]["cpu"], &spec["nodeSelector"]["runtime"]), (&json!("1"), &json!("slow")));
    let other = pod(json!({"runtimeClassName": "slow", "nodeSelector": {"runtime": "fast"}}));
    assert_eq!(post(&server, PODS, &other).await.status, 403);
}

#[tokio::test]
async fn claims_have_the_default_class() {
    let server = Server::builder().build().await.unwrap();
    let class = json!({
        "metadata": {"name": "disks", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": "example.com/disks"
    });
    assert_eq!(post(&server, "/apis/storage.k8s.io/v1/storageclasses", &class).await.status, 201);
    let claim = |name: &str, class: Value| {
        let mut claim = json!({
            "metadata": {"name": name},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        });
        if !class.is_null() {
            claim["spec"]["storageClassName"] = class;
        }
        claim
    };
    let claims = "/api/v1/namespaces/default/persistentvolumeclaims";
    let filled = post(&server, claims, &claim("a", Value::Null)).await.body;
    assert_eq!(filled["spec"]["storageClassName"], "disks");
    let without = post(&server, claims, &claim("b", "".into())).await.body;
    assert_eq!(without["spec"]["storageClassName"], "");
}

#[tokio::test]
async fn namespaces_of_the_system_stay() {
    let server = Server::builder().build().await.unwrap();
    let refused = delete(&server, "/api/v1/namespaces/default", None).await;
    let told = "namespaces \"default\" is forbidden: this namespace may not be deleted";
    assert_eq!((refused.status, refused.message()), (403, told));
    assert_eq!(get(&server, "/api/v1/namespaces/default").await.status, 200);
}

#[tokio::test]
async fn a_state_that_is_gone_is_continued_in_the_newest() {
    let server = Server::builder().build().await.unwrap();
    let maps = "/api/v1/namespaces/default/configmaps";
    for name in ["a", "b", "c"] {
        post(&server, maps, &json!({"metadata": {"name": name}})).await;
    }
    let first = get(&server, &format!("{maps}?limit=1")).await.body;
    let token = first["metadata"]["continue"].as_str().unwrap().to_owned();
    post(&server, maps, &json!({"metadata": {"name": "d"}})).await;
    server.store().compact(server.store().revision());
    let gone = get(&server, &format!("{maps}?continue={token}")).await;
    assert_eq!(gone.status, 410);
    let token = gone.body["metadata"]["continue"].as_str().unwrap();
    let rest = get(&server, &format!("{maps}?continue={token}")).await.body;
    let names: Vec<&Value> =
        rest["items"].as_array().unwrap().iter().map(|item| &item["metadata"]["name"]).collect();
    assert_eq!(names.len(), 3, "{names:?}");
}
