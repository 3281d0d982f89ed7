//! What the routes answer to reviews, good and malformed.

use admit_policy::PolicySet;
use axum::Router;
use axum::body::{Body, to_bytes};
use http::{Request, StatusCode};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::watch;
use tower::ServiceExt;

use super::*;

fn router() -> Router {
    let policies = watch::channel(Arc::new(PolicySet::default())).1;
    Admission { policies, namespaces: watch::channel(Arc::default()).1 }.router()
}

async fn post(content_type: &str, body: impl Into<Body>) -> (StatusCode, Value) {
    let request = Request::post("/validate?timeout=10s").header("content-type", content_type);
    let response = router().oneshot(request.body(body.into()).unwrap()).await.unwrap();
    let code = response.status();
    let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    (code, serde_json::from_slice(&bytes).unwrap())
}

fn review(request: &Value) -> String {
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).to_string()
}

#[tokio::test]
async fn a_request_that_no_policy_matches_is_allowed_under_its_uid() {
    let request = json!({
        "uid": "not-a-uuid", "operation": "CREATE",
        "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
        "resource": {"group": "", "version": "v1", "resource": "configmaps"},
        "object": {"apiVersion": "v1", "kind": "ConfigMap"},
    });
    let (code, answer) = post("application/json", review(&request)).await;
    assert_eq!(code, StatusCode::OK);
    assert_eq!(
        answer,
        json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "response": {"uid": "not-a-uuid", "allowed": true},
        })
    );
}

#[tokio::test]
async fn a_malformed_request_with_a_uid_is_denied_under_it() {
    let (code, answer) = post("application/json", review(&json!({"uid": "u1", "operation": "PATCH"}))).await;
    assert_eq!(code, StatusCode::OK);
    assert_eq!(answer["response"]["uid"], "u1");
    assert_eq!(answer["response"]["allowed"], false);
    assert_eq!(answer["response"]["status"]["code"], 400);
}

#[tokio::test]
async fn what_is_no_review_is_a_bad_request() {
    for body in ["", "{", "[]", "{}", r#"{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview"}"#]
    {
        let (code, answer) = post("application/json", body).await;
        assert_eq!(code, StatusCode::BAD_REQUEST, "{body}");
        assert_eq!(answer["kind"], "Status", "{body}");
    }
    let (code, _) = post("application/yaml", "").await;
    assert_eq!(code, StatusCode::UNSUPPORTED_MEDIA_TYPE);
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused() {
    let (code, _) = post("application/json", vec![b' '; 8 * 1024 * 1024 + 1]).await;
    assert_eq!(code, StatusCode::PAYLOAD_TOO_LARGE);
}
