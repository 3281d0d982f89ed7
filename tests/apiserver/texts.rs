//! Objects are kept as text: what comes back is what was sent, and lists that are put together from texts say what lists of
//! values say.

use std::time::Duration;

use admit_apiserver::Server;
use admit_apiserver::store::{RedbBackend, Store};
use axum::body::Body;
use http::Request;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tokio::time::timeout;
use tower::ServiceExt as _;

use crate::harness::{delete, merge, post};

const PATIENCE: Duration = Duration::from_secs(60);
const THINGS: &str = "/apis/example.com/v1/things";

async fn read(server: &Server, path: &str) -> (u16, String) {
    let response = server.router().oneshot(Request::get(path).body(Body::empty()).unwrap()).await.unwrap();
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (code, String::from_utf8(body.to_vec()).unwrap())
}

async fn filled() -> Server {
    let server = Server::builder().build().await.unwrap();
    for n in 0..7 {
        let labels = json!({"n": n.to_string(), "odd": (n % 2).to_string()});
        let meta = json!({"name": format!("m{n}"), "labels": labels});
        let map = json!({"metadata": meta, "data": {"text": "\"\u{1}\u{e9}\\\n"}});
        assert_eq!(post(&server, "/api/v1/namespaces/default/configmaps", &map).await.status, 201);
        let containers = json!([{"name": "c", "image": "i:1", "resources": {"limits": {"cpu": "0.10"}}}]);
        let pod = json!({"metadata": meta, "spec": {"containers": containers, "nodeName": format!("node{}", n % 2)}});
        assert_eq!(post(&server, "/api/v1/namespaces/default/pods", &pod).await.status, 201);
        let job = json!({"metadata": meta, "spec": {"template": {"spec": {
            "restartPolicy": "Never", "containers": containers}}}});
        assert_eq!(post(&server, "/apis/batch/v1/namespaces/default/jobs", &job).await.status, 201);
        let scaler = json!({"metadata": meta, "spec": {"maxReplicas": 3,
            "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}}});
        let scalers = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";
        assert_eq!(post(&server, scalers, &scaler).await.status, 201);
        let event = json!({"metadata": meta, "involvedObject": {"namespace": "default"}, "reason": "R"});
        assert_eq!(post(&server, "/api/v1/namespaces/default/events", &event).await.status, 201);
    }
    merge(&server, "/api/v1/namespaces/default/pods/m3", &json!({"metadata": {"labels": {"odd": "0"}}}))
        .await;
    delete(&server, "/api/v1/namespaces/default/configmaps/m4", None).await;
    server
}

/// Indented lists are made of values. Their continue tokens and all else are the same.
#[tokio::test]
async fn lists_of_texts_say_what_lists_of_values_say() {
    let server = filled().await;
    let lists = [
        "/api/v1/namespaces/default/configmaps?",
        "/api/v1/configmaps?limit=2",
        "/api/v1/configmaps?limit=100",
        "/api/v1/namespaces/none/configmaps?",
        "/api/v1/pods?labelSelector=odd%3D0",
        "/api/v1/pods?labelSelector=odd%3D0&limit=2",
        "/api/v1/pods?fieldSelector=metadata.name%3Dm5",
        "/api/v1/pods?fieldSelector=spec.nodeName%3Dnode1",
        "/api/v1/pods?fieldSelector=spec.nodeName%3Dnode1&labelSelector=n%3D3",
        "/api/v1/namespaces?",
        "/api/v1/events?",
        "/apis/events.k8s.io/v1/events?",
        "/apis/batch/v1/jobs?",
        "/apis/autoscaling/v1/horizontalpodautoscalers?",
        "/apis/autoscaling/v2/horizontalpodautoscalers?",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles?",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles?limit=5",
    ];
    for list in lists {
        let (code, text) = read(&server, list).await;
        let (pretty_code, pretty) = read(&server, &format!("{list}&pretty=true")).await;
        assert_eq!((code, pretty_code), (200, 200), "{list}: {text}");
        // Members keep their order.
        let values: Value = serde_json::from_str(&pretty).unwrap();
        assert_eq!(text, format!("{values}\n"), "{list}");
    }
    let (code, text) = read(&server, "/api/v1/pods?labelSelector=(").await;
    assert_eq!(code, 400, "{text}");
}

/// Nested as deeply as requests may be.
#[tokio::test]
async fn what_is_nested_deeply_survives_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store.redb");
    let server = server_on(&file).await;
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let definition = testing::definition("things.example.com", "Thing", "Cluster", &schema);
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(post(&server, definitions, &definition).await.status, 201);
    let mut spec = json!([1.0, -0.0, u64::MAX, "\u{0}"]);
    for _ in 0..250 {
        spec = json!({ "a": spec });
    }
    let thing =
        json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "deep"}, "spec": spec});
    assert_eq!(post(&server, THINGS, &thing).await.status, 201);
    let before = read(&server, &format!("{THINGS}/deep")).await;
    assert_eq!(before.0, 200);
    drop(server);
    let server = server_on(&file).await;
    assert_eq!(read(&server, &format!("{THINGS}/deep")).await, before);
}

/// The file is free once the writer of the server before has ended.
async fn server_on(file: &std::path::Path) -> Server {
    let opened = timeout(PATIENCE, async {
        loop {
            match RedbBackend::open(file) {
                Ok(backend) => return backend,
                Err(_) => tokio::task::yield_now().await,
            }
        }
    });
    let store = Store::open(Box::new(opened.await.unwrap())).unwrap();
    Server::builder().store(store).build().await.unwrap()
}
