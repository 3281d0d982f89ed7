//! Routes HTTP requests for metrics, health and readiness of a set of controllers. Uses plain HTTP; of requests only
//! the name of a controller is read.

use std::sync::Arc;

use axum::Router;
use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::{StatusCode, header};
use serde::Serialize;

use super::manager::Manager;
use crate::telemetry::{ControllerMetrics, Counts, MEDIA_TYPE, Readiness, State};

/// The metrics and readiness that the routes serve.
#[derive(Clone, Debug)]
pub struct Observed {
    metrics: Arc<ControllerMetrics>,
    readiness: Readiness,
}

/// The state of one controller.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Controller {
    pub name: &'static str,
    pub ready: bool,
    /// Why it is not ready; empty if its name says enough.
    pub reason: String,
    #[serde(flatten)]
    pub counts: Counts,
}

impl Observed {
    #[must_use]
    pub fn of(manager: &Manager) -> Self {
        Self { metrics: manager.metrics(), readiness: manager.readiness() }
    }

    /// Returns the document of `/metrics`.
    #[must_use]
    pub fn text(&self) -> String {
        self.metrics.text(&self.readiness)
    }

    /// Returns every controller, sorted by name.
    #[must_use]
    pub fn controllers(&self) -> Vec<Controller> {
        let of = |(name, state)| {
            let (ready, reason) = match state {
                State::Ready => (true, String::new()),
                State::Failed(reason) => (false, reason),
            };
            Controller { name, ready, reason, counts: self.metrics.counts(name) }
        };
        self.readiness.states().into_iter().map(of).collect()
    }

    /// Creates the routes `GET /metrics`, `/healthz`, which any process answers that does not hang, `/readyz` with a line for each
    /// controller, and `/readyz/CONTROLLER`.
    pub fn router(self) -> Router {
        let (one, all) = (self.readiness.clone(), self.readiness.clone());
        Router::new()
            .route("/metrics", get(|| async move { ([(header::CONTENT_TYPE, MEDIA_TYPE)], self.text()) }))
            .route("/healthz", get(|| async { "ok" }))
            .route("/readyz", get(|| async move { all.answer() }))
            .route("/readyz/{controller}", get(|Path(name): Path<String>| async move { of(&one, &name) }))
    }
}

fn of(readiness: &Readiness, controller: &str) -> Response {
    match readiness.state(controller) {
        Some(State::Ready) => "ok".into_response(),
        Some(State::Failed(reason)) => (StatusCode::SERVICE_UNAVAILABLE, reason).into_response(),
        None => (StatusCode::NOT_FOUND, "no controller of that name").into_response(),
    }
}
