//! Every protobuf body that kubectl was recorded to send is understood.

use admit_apiserver::Server;
use admit_apiserver::internals::{decode, protobuf, tables};
use axum::body::Body;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Request;
use http_body_util::BodyExt as _;
use serde_json::Value;
use tower::ServiceExt as _;

use crate::corpus;

#[test]
fn recorded_bodies_are_read() {
    let Some(folder) = testing::corpus("kubectl").unwrap() else { return };
    let mut read = 0;
    for scenario in corpus::lines(&folder.join("scenarios.jsonl")) {
        for exchange in exchanges(&scenario) {
            let Some(body) = exchange.pointer("/request/bodyBase64").and_then(Value::as_str) else {
                continue;
            };
            let bytes = STANDARD.decode(body).expect("base64");
            let path = exchange.pointer("/request/path").and_then(Value::as_str).expect("a path");
            let object = protobuf::decode(tables(), &bytes).unwrap_or_else(|error| panic!("{path}: {error}"));
            let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
            let (group, version) = text("apiVersion").split_once('/').unwrap_or(("", text("apiVersion")));
            let kind =
                tables().kind(group, version, text("kind")).unwrap_or_else(|| panic!("{path}: {object}"));
            let canonical =
                decode::decode(tables(), kind, object).unwrap_or_else(|error| panic!("{path}: {error}"));
            assert!(canonical.unknown.is_empty(), "{path}");
            read += 1;
        }
    }
    assert!(read > 0, "the corpus holds no protobuf bodies");
}

fn exchanges(scenario: &Value) -> impl Iterator<Item = &Value> {
    let steps = scenario.get("steps").and_then(Value::as_array).into_iter().flatten();
    steps.filter_map(|step| step.get("exchanges").and_then(Value::as_array)).flatten()
}

/// Verbs are a list in JSON, and in protobuf a message with the list in it: `22 NN 0a 06 create`.
#[tokio::test]
async fn verbs_of_discovery_are_a_message() {
    let server = Server::builder().build().await.unwrap();
    let request = Request::get("/apis/authentication.k8s.io/v1")
        .header("accept", "application/vnd.kubernetes.protobuf");
    let response = server.router().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(response.status(), 200);
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let verbs = b"\x22\x08\x0a\x06create";
    assert_eq!(body.windows(verbs.len()).filter(|window| window == verbs).count(), 2);
}
