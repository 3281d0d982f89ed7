//! Answers that are made of the stored text are byte for byte those that are made of the object.

use admit_apiserver::Server;
use axum::body::Body;
use http::{Method, Request};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::harness::{delete, merge, post, send};

const NAMESPACED: &str = "/api/v1/namespaces/default";

/// A watch of the ConfigMaps of a namespace from now on.
async fn watch(server: &Server, query: &str) -> Body {
    let path = format!("{NAMESPACED}/configmaps?watch=1&timeoutSeconds=60{query}");
    let request = Request::get(path).body(Body::empty()).unwrap();
    server.router().oneshot(request).await.unwrap().into_body()
}

async fn text(server: &Server, path: &str) -> String {
    let request = Request::builder().method(Method::GET).uri(path).body(Body::empty()).unwrap();
    let body = server.router().oneshot(request).await.unwrap().into_body();
    String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap()
}

async fn event(watch: &mut Body) -> String {
    String::from_utf8(watch.frame().await.unwrap().unwrap().into_data().unwrap().to_vec()).unwrap()
}

#[tokio::test]
async fn one_object_is_the_same_from_its_text() {
    let server = Server::builder().build().await.unwrap();
    let container = json!({"name": "c", "image": "i:1", "env": [{"name": "A", "value": "\u{e9}\"\\"}]});
    let meta = json!({"name": "one", "labels": {"a": "b"}, "annotations": {"number": "1.0"}});
    for (path, object) in [
        ("configmaps", json!({"metadata": meta, "data": {"a": "\u{1}", "b": "1"}, "immutable": false})),
        ("secrets", json!({"metadata": meta, "stringData": {"a": "b"}})),
        ("pods", json!({"metadata": meta, "spec": {"containers": [container]}})),
        ("services", json!({"metadata": meta, "spec": {"ports": [{"port": 80}]}})),
    ] {
        let at = format!("{NAMESPACED}/{path}");
        assert_eq!(post(&server, &at, &object).await.status, 201, "{path}");
        let from_text = text(&server, &format!("{at}/one")).await;
        // What is indented is made of the object.
        let made: Value = serde_json::from_str(&text(&server, &format!("{at}/one?pretty=1")).await).unwrap();
        assert_eq!(from_text, format!("{made}\n"), "{path}");
        assert!(text(&server, &format!("{at}/none")).await.contains("\"reason\":\"NotFound\""));
    }
    let autoscaler = json!({"metadata": {"name": "one"}, "spec": {"maxReplicas": 3,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}});
    let at = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers";
    assert_eq!(post(&server, at, &autoscaler).await.status, 201);
    let other = text(&server, &format!("{at}/one")).await;
    assert!(
        other.starts_with("{\"kind\":\"HorizontalPodAutoscaler\",\"apiVersion\":\"autoscaling/v1\""),
        "{other}"
    );
}

#[tokio::test]
async fn writes_are_answered_with_what_is_read_then() {
    let server = Server::builder().build().await.unwrap();
    let at = format!("{NAMESPACED}/replicationcontrollers");
    let one = format!("{at}/one");
    let template =
        json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}});
    let mut object = json!({
        "apiVersion": "v1", "kind": "ReplicationController",
        "metadata": {"name": "one", "annotations": {"e": "\u{e9}\"\\\u{1}"}},
        "spec": {"replicas": 1, "selector": {"a": "b"}, "template": template},
    });
    let written = async |method: &str, path: &str, kind: &str, body: &Value| {
        let answer = send(&server, method, path, kind, Some(body)).await;
        assert!(answer.status().is_success(), "{method} {path}");
        let answer = answer.into_body().collect().await.unwrap().to_bytes();
        String::from_utf8(answer.to_vec()).unwrap()
    };
    let json = "application/json";
    assert_eq!(written("POST", &at, json, &object).await, text(&server, &one).await);
    object["spec"]["replicas"] = json!(2);
    assert_eq!(written("PUT", &one, json, &object).await, text(&server, &one).await);
    let status = format!("{one}/status");
    object["status"] = json!({"replicas": 1});
    assert_eq!(written("PUT", &status, json, &object).await, text(&server, &one).await);
    let (merge, apply) = ("application/merge-patch+json", "application/apply-patch+yaml");
    let labels = json!({"metadata": {"labels": {"l": "1"}}});
    assert_eq!(written("PATCH", &one, merge, &labels).await, text(&server, &one).await);
    let applied = json!({"apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": "one", "labels": {"m": "2"}}});
    let path = format!("{one}?fieldManager=tester");
    assert_eq!(written("PATCH", &path, apply, &applied).await, text(&server, &one).await);
    // Of its scale, and without a write, another document is shown than the stored one.
    let scale = written("PATCH", &format!("{one}/scale"), merge, &json!({"spec": {"replicas": 3}})).await;
    assert!(scale.starts_with("{\"kind\":\"Scale\",\"apiVersion\":\"autoscaling/v1\""), "{scale}");
    let before = text(&server, &one).await;
    let tried =
        written("PATCH", &format!("{one}?dryRun=All"), merge, &json!({"spec": {"replicas": 4}})).await;
    assert!(tried.contains("\"replicas\":4"), "{tried}");
    assert_eq!(text(&server, &one).await, before);
}

#[tokio::test]
async fn events_are_the_same_from_texts() {
    let server = Server::builder().build().await.unwrap();
    let maps = format!("{NAMESPACED}/configmaps");
    let mut all = watch(&server, "").await;
    let mut selected = watch(&server, "&labelSelector=app%3Da").await;
    let mut named = watch(&server, "&fieldSelector=metadata.name%3Dm").await;
    let map = json!({"metadata": {"name": "m", "labels": {"app": "a"}}, "data": {"a": "\u{e9}"}});
    assert_eq!(post(&server, &maps, &map).await.status, 201);
    let at = format!("{maps}/m");
    let seen =
        |kind: &str, object: &str| format!("{{\"type\":\"{kind}\",\"object\":{}}}\n", object.trim_end());
    let added = text(&server, &at).await;
    for watch in [&mut all, &mut selected, &mut named] {
        assert_eq!(event(watch).await, seen("ADDED", &added));
    }
    assert_eq!(merge(&server, &at, &json!({"metadata": {"labels": {"app": "b"}}})).await.status, 200);
    let changed = text(&server, &at).await;
    assert_eq!(event(&mut all).await, seen("MODIFIED", &changed));
    assert_eq!(event(&mut named).await, seen("MODIFIED", &changed));
    // What left the selection is shown as it was, at the revision of the change.
    let left: Value = serde_json::from_str(&event(&mut selected).await).unwrap();
    let now: Value = serde_json::from_str(&changed).unwrap();
    assert_eq!(
        (&left["type"], &left["object"]["metadata"]["labels"]["app"]),
        (&json!("DELETED"), &json!("a"))
    );
    assert_eq!(left["object"]["metadata"]["resourceVersion"], now["metadata"]["resourceVersion"]);
    assert_eq!(merge(&server, &at, &json!({"metadata": {"labels": {"app": "a"}}})).await.status, 200);
    assert_eq!(event(&mut selected).await, seen("ADDED", &text(&server, &at).await));
    event(&mut all).await;
    event(&mut named).await;
    assert_eq!(delete(&server, &at, None).await.status, 200);
    for watch in [&mut all, &mut selected, &mut named] {
        let last = event(watch).await;
        let read: Value = serde_json::from_str(&last).unwrap();
        assert_eq!(read["type"], "DELETED");
        assert_eq!(last, format!("{read}\n"));
    }
}
