//! Runs the webhook of a scenario, which answers reviews as it did when it was recorded.

use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::{Json, State};
use http::Uri;
use serde_json::{Value, json};

/// Recorded reviews that were not asked for yet.
#[derive(Clone, Debug)]
pub(super) struct Answers(Arc<Mutex<Vec<Value>>>);

impl Answers {
    pub(super) fn new(scenario: &Value) -> Self {
        let reviews = scenario["webhookReviews"].as_array().cloned().unwrap_or_default();
        Self(Arc::new(Mutex::new(reviews)))
    }

    pub(super) fn router(self) -> Router {
        Router::new().fallback(answer).with_state(self)
    }

    /// The answer to the first review of the same path about the same operation on the same object.
    fn take(&self, path: &str, request: &Value) -> Option<Value> {
        let mut left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |recorded: &Value| {
            let asked = &recorded["review"]["request"];
            recorded["path"] == path
                && ["operation", "name", "namespace", "dryRun", "subResource"]
                    .iter()
                    .all(|field| asked[*field] == request[*field])
        };
        let index = left.iter().position(same)?;
        Some(left.remove(index)["answer"].take())
    }
}

async fn answer(State(answers): State<Answers>, uri: Uri, Json(review): Json<Value>) -> Json<Value> {
    let path = uri.path_and_query().map_or("", |path| path.as_str());
    let mut answer = answers.take(path, &review["request"]).unwrap_or_else(|| {
        let why = "this review was not recorded";
        json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "response": {"allowed": false, "status": {"message": why}}
        })
    });
    answer["response"]["uid"] = review["request"]["uid"].clone();
    Json(answer)
}
