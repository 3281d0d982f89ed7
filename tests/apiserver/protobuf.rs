//! Every protobuf body that kubectl was recorded to send is understood.

use admit_apiserver::Server;
use admit_apiserver::internals::{decode, protobuf, tables};
use axum::body::Body;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{Request, StatusCode};
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

/// The aggregated documents say the same in protobuf: clients of Go ask for that first.
#[tokio::test]
async fn aggregated_discovery_is_written_in_protobuf() {
    let server = Server::builder().build().await.unwrap();
    let answer = async |media_type: &str, path: &str| {
        let accept = format!("{media_type};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");
        let request = Request::get(path).header("accept", &accept).body(Body::empty()).unwrap();
        let response = server.router().oneshot(request).await.unwrap();
        assert_eq!(
            (response.status(), response.headers()["vary"].as_bytes()),
            (StatusCode::OK, &b"Accept"[..])
        );
        let headers =
            ["content-type", "etag"].map(|name| response.headers()[name].to_str().unwrap().to_owned());
        (headers, response.into_body().collect().await.unwrap().to_bytes())
    };
    for path in ["/api", "/apis"] {
        let ([plain, tag], json) = answer("application/json", path).await;
        let ([told, same_tag], encoded) = answer("application/vnd.kubernetes.protobuf", path).await;
        assert_eq!(told, plain.replace("json", "vnd.kubernetes.protobuf"));
        assert_eq!(tag, same_tag);
        let json: Value = serde_json::from_slice(&json).unwrap();
        let decoded = protobuf::decode(tables(), &encoded).unwrap();
        let (read, told) = (served(&decoded), served(&json));
        assert_eq!(read, told);
        assert!(read.iter().any(|row| row.ends_with(" scale")) && read.len() > 20, "{read:?}");
        let ([of_any, _], _) = answer("*/*", path).await;
        assert_eq!(of_any, plain);
    }
}

/// A row for each resource and subresource of an aggregated document.
fn served(document: &Value) -> Vec<String> {
    let items = |value: &Value, field: &str| value[field].as_array().cloned().unwrap_or_default();
    let mut rows = Vec::new();
    for group in items(document, "items") {
        for version in items(&group, "versions") {
            for resource in items(&version, "resources") {
                let kind = &resource["responseKind"]["kind"];
                let row = format!(
                    "{} {} {} {kind}",
                    group["metadata"]["name"].as_str().unwrap_or_default(),
                    version["version"],
                    resource["resource"]
                );
                let below = items(&resource, "subresources");
                let part = |part: &Value| {
                    format!("{row} {} {}", part["verbs"], part["subresource"].as_str().unwrap_or(""))
                };
                rows.extend(below.iter().map(part));
                rows.push(format!(
                    "{row} {} {} {}",
                    resource["verbs"],
                    resource["scope"],
                    items(&resource, "shortNames").len()
                ));
            }
        }
    }
    rows
}
