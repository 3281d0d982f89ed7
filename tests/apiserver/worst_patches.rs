//! The worst bodies of patches, at their full size: each took minutes or gigabytes while something was searched for each
//! item of a list, copied for each member, or kept for each path. In a build without optimisation, beside other tests,
//! each ends well within the bound.

use std::time::{Duration, Instant};

use admit_apiserver::Server;
use axum::body::Body;
use http::Request;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::harness::{Answer, answer, post};

/// Far more than any of them needs, far less than what the square of their size took.
const BOUND: Duration = Duration::from_secs(60);

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn patch(server: &Server, kind: &str, path: &str, body: &Value) -> Answer {
    let kind = match kind {
        "apply" => "apply-patch+yaml",
        "json" => "json-patch+json",
        "merge" => "merge-patch+json",
        _ => "strategic-merge-patch+json",
    };
    let query = if kind.starts_with("apply") { "?fieldManager=m&force=true" } else { "" };
    let body = body.to_string();
    assert!(body.len() <= 3 << 20, "{} bytes", body.len());
    let request = Request::builder()
        .method("PATCH")
        .uri(format!("{path}{query}"))
        .header("content-type", format!("application/{kind}"))
        .body(Body::from(body));
    let started = Instant::now();
    let answer = answer(server.router().oneshot(request.unwrap()).await.unwrap()).await;
    let took = started.elapsed();
    assert!(took < BOUND, "{kind} of {path} took {took:?}");
    answer
}

async fn server() -> Server {
    Server::builder().build().await.unwrap()
}

async fn with_map(data: &Value) -> Server {
    let server = server().await;
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data});
    assert_eq!(post(&server, CONFIG_MAPS, &map).await.status, 201);
    server
}

fn map(metadata: &Value) -> Value {
    let mut map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    map["metadata"].as_object_mut().unwrap().extend(metadata.as_object().unwrap().clone());
    map
}

#[tokio::test]
async fn copies_of_copies_are_refused() {
    let server = with_map(&json!({"k": "v".repeat(1_000)})).await;
    let path = format!("{CONFIG_MAPS}/a");
    let doubled: Vec<Value> =
        (0..40).map(|n| json!({"op": "copy", "from": "", "path": format!("/data/k{n}")})).collect();
    let refused = patch(&server, "json", &path, &doubled.into()).await;
    assert_eq!((refused.status, refused.body["reason"].as_str()), (422, Some("Invalid")));
    let adds: Vec<Value> =
        (0..10_000).map(|n| json!({"op": "add", "path": format!("/data/k{n}"), "value": "v"})).collect();
    assert_eq!(patch(&server, "json", &path, &adds.into()).await.status, 200);
}

#[tokio::test]
async fn an_object_does_not_grow_beyond_what_a_body_creates() {
    let server = with_map(&json!({})).await;
    let path = format!("{CONFIG_MAPS}/a");
    let big = |name: &str| json!({"binaryData": {name: "QUFB".repeat(200_000)}});
    assert_eq!(patch(&server, "merge", &path, &big("a")).await.status, 200);
    let large = json!({"metadata": {"annotations": {"a": "x".repeat(2_900_000)}}});
    let refused = patch(&server, "merge", &path, &large).await;
    assert_eq!((refused.status, refused.message()), (413, "Request entity too large: limit is 3145728"));
}

#[tokio::test]
async fn lists_of_texts() {
    let server = with_map(&json!({})).await;
    let path = format!("{CONFIG_MAPS}/a");
    let finalizers: Vec<String> = (0..75_000).map(|n| format!("e.x/{n}")).collect();
    let body = json!({"metadata": {"finalizers": finalizers, "$setElementOrder/finalizers": []}});
    assert_eq!(patch(&server, "strategic", &path, &body).await.status, 200);
    let gone = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": finalizers}});
    assert_eq!(patch(&server, "strategic", &path, &gone).await.status, 200);
    let applied = map(&json!({"finalizers": &finalizers[..60_000]}));
    assert_eq!(patch(&server, "apply", &path, &applied).await.status, 200);
    assert_eq!(patch(&server, "apply", &path, &map(&json!({}))).await.status, 200);
}

#[tokio::test]
async fn owner_references() {
    let server = with_map(&json!({})).await;
    let path = format!("{CONFIG_MAPS}/a");
    let owner = |n: usize| json!({"apiVersion": "v1", "kind": "K", "name": "n", "uid": n.to_string()});
    let owners: Vec<Value> = (0..20_000).map(owner).collect();
    let body = json!({"metadata": {"ownerReferences": owners}});
    assert_eq!(patch(&server, "merge", &path, &body).await.status, 200);
    let server = with_map(&json!({})).await;
    let twice: Vec<Value> = (0..20_000).map(|n| owner(n / 2)).collect();
    let made = patch(&server, "merge", &path, &json!({"metadata": {"ownerReferences": twice}})).await;
    assert_eq!(made.body["metadata"]["ownerReferences"].as_array().unwrap().len(), 10_000);
}

#[tokio::test]
async fn items_with_keys() {
    let server = server().await;
    let pods = "/api/v1/namespaces/default/pods";
    let path = format!("{pods}/a");
    let env: Vec<Value> = (0..60_000).map(|n| json!({"name": format!("E{n}"), "value": "v"})).collect();
    let pod = |env: &[Value]| {
        let containers = json!([{"name": "c", "image": "i", "env": env}]);
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": containers}})
    };
    // Upstream's store takes some 20,000 with their managers, too.
    let refused = patch(&server, "apply", &path, &pod(&env)).await;
    assert_eq!((refused.status, refused.body["reason"].as_str()), (413, Some("RequestEntityTooLarge")));
    assert_eq!(patch(&server, "apply", &path, &pod(&env[..20_000])).await.status, 201);
    assert_eq!(patch(&server, "apply", &path, &pod(&env[..1])).await.status, 422);
}

#[tokio::test]
async fn long_names_over_many_members() {
    let server = server().await;
    let definition = testing::definition(
        "things.e.x",
        "Thing",
        "Namespaced",
        &json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
    );
    let made = post(&server, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await;
    assert_eq!(made.status, 201);
    let name = "n".repeat(1_000);
    let members: serde_json::Map<String, Value> = (0..60_000).map(|n| (n.to_string(), json!(0))).collect();
    let thing =
        json!({"apiVersion": "e.x/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {&name: members}});
    let path = "/apis/e.x/v1/namespaces/default/things/a";
    assert_eq!(patch(&server, "apply", path, &thing).await.status, 201);
    // Everything is changed by somebody else, and then disputed.
    let changed: serde_json::Map<String, Value> = (0..60_000).map(|n| (n.to_string(), json!(1))).collect();
    let body = json!({"spec": {&name: changed}});
    assert_eq!(patch(&server, "merge", path, &body).await.status, 200);
    let none: serde_json::Map<String, Value> = (0..60_000).map(|n| (n.to_string(), Value::Null)).collect();
    assert_eq!(patch(&server, "merge", path, &json!({"spec": {&name: none}})).await.status, 200);
}
