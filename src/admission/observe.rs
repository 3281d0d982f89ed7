//! Serves the second listener, for operators: metrics, probes, and the policies in force. It uses plain HTTP, and reads nothing
//! that a caller sends.

use std::sync::Arc;

use admit_policy::{FailurePolicy, Policy};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use http::header;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::routes::readyz;
use super::snapshot::{Broken, InForce};
use crate::telemetry::{MEDIA_TYPE, Metrics, Readiness};

/// What operators can query.
#[derive(Clone, Debug)]
pub struct Observed {
    pub policies: watch::Receiver<Arc<InForce>>,
    pub metrics: Arc<Metrics>,
    pub readiness: Readiness,
}

impl Observed {
    /// `GET /metrics`, `/livez`, `/readyz` and `/policies`.
    pub fn router(self) -> Router {
        let Self { policies, metrics, readiness } = self;
        Router::new()
            .route("/metrics", get(|| async move { text(&metrics) }))
            .route("/livez", get(|| async { "ok" }))
            .route("/readyz", get(|| async move { readyz(&readiness) }))
            .route("/policies", get(|| async move { Json(loaded(&policies.borrow())) }))
    }
}

fn text(metrics: &Metrics) -> Response {
    ([(header::CONTENT_TYPE, MEDIA_TYPE)], metrics.text()).into_response()
}

/// Returns the policies in force: names and hashes, and compile errors, but no contents.
fn loaded(in_force: &InForce) -> Value {
    let failure_policy = |policy: &Policy| match policy.failure_policy {
        FailurePolicy::Fail => "Fail",
        FailurePolicy::Ignore => "Ignore",
    };
    let policies: Vec<Value> = in_force
        .policies
        .policies()
        .map(|(policy, bindings)| {
            json!({
                "name": &*policy.name,
                "failurePolicy": failure_policy(policy),
                "enforcing": in_force.enforces(&policy.name),
                "bindings": bindings.iter().map(|binding| json!({
                    "name": &*binding.name,
                    "actions": binding.actions.iter().map(|action| action.as_str()).collect::<Vec<_>>(),
                })).collect::<Vec<_>>(),
            })
        })
        .collect();
    let mutating = in_force.policies.mutating_policies().map(|(policy, bindings)| {
        json!({
            "name": &*policy.common().name,
            "failurePolicy": failure_policy(policy.common()),
            "bindings": bindings.iter().map(|binding| json!({"name": &*binding.name})).collect::<Vec<_>>(),
        })
    });
    let definitions: Vec<String> = in_force
        .policies
        .documents()
        .crds()
        .iter()
        .map(|definition| definition.definition().group_resource())
        .collect();
    let broken: Vec<Value> = in_force
        .broken
        .iter()
        .map(|Broken { kind, name, mistake, previous }| {
            json!({"kind": kind, "name": name, "mistake": mistake, "previousInForce": previous})
        })
        .collect();
    json!({
        "sha256": in_force.hash, "policies": policies,
        "mutatingPolicies": mutating.collect::<Vec<_>>(), "customResourceDefinitions": definitions,
        "warnings": in_force.warnings, "broken": broken,
    })
}
