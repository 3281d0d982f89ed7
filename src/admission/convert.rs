//! Answers ConversionReviews of `apiextensions.k8s.io/v1` at `/convert`, with the same uid: the converted objects in the same
//! order, or a Failure with a message.
//!
//! A review with a uid is answered by a review with HTTP status 200; other requests as on the other routes.

use std::sync::Arc;
use std::time::Instant;

use admit_apimachinery::status::{Reason, Status};
use admit_policy::json;
use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, StatusCode, Uri};
use serde_json::{Value, json};
use tokio::time::{Instant as TokioInstant, timeout_at};

use super::converters::Converters;
use super::deadline::Deadline;
use super::failure_answer::FailureAnswer;
use super::log::shown;
use super::review::{Answer, Decided, recover_id};
use super::routes::{Context, is_json, no_body, no_json};
use super::workers::{Gone, NotDone};

/// The route in metrics labels.
const ROUTE: &str = "convert";
const API_VERSION: &str = "apiextensions.k8s.io/v1";
const KIND: &str = "ConversionReview";

/// Why a review cannot be read.
#[derive(Debug, thiserror::Error)]
enum ReviewError {
    #[error("body is not JSON: {0}")]
    Syntax(json::JsonError),
    #[error("duplicate field `{0}`")]
    Duplicate(String),
    #[error("expected {API_VERSION}, Kind={KIND}")]
    OtherKind,
    #[error("`{0}` is missing")]
    Missing(&'static str),
    #[error("`request.objects` is no list")]
    InvalidObjects,
}

/// Creates the response to a review that was not processed.
fn undecided(why: &FailureAnswer, uid: Option<&str>) -> Decided {
    let FailureAnswer { status, label } = why;
    let answer = match uid {
        Some(uid) => failure(uid, &status.message),
        None => Answer::plain(status),
    };
    Decided { answer, label }
}

impl Context {
    pub(super) async fn convert(self, uri: &Uri, headers: &HeaderMap, body: Body) -> Response {
        let started = Instant::now();
        let deadline = Deadline::new(started, self.admission.timeout, uri.query());
        let metrics = Arc::clone(&self.admission.metrics);
        let mut trace = self.admission.traces.begin(ROUTE, headers);
        let Decided { answer, label } = self.converted(deadline, headers, body).await;
        metrics.request(ROUTE, label, started.elapsed());
        trace.note("admission.answer", label);
        trace.note("http.response.status_code", i64::from(answer.code.as_u16()));
        if label != "converted" {
            trace.failed(label);
        }
        answer.into_response()
    }

    async fn converted(self, deadline: Deadline, headers: &HeaderMap, body: Body) -> Decided {
        if !is_json(headers) {
            return undecided(&no_json(), None);
        }
        let received = match self.memory.receive(headers, body).await {
            Ok(received) => received,
            Err(problem) => return undecided(&no_body(problem), None),
        };
        let (bytes, converters) = (received.bytes.clone(), self.admission.converters.clone());
        let work = move |gone: &Gone<'_>| {
            let passed = || Instant::now() >= deadline.evaluation || gone();
            let told = answer(&converters, &received.bytes, &passed);
            // The body's memory counts until the work is done.
            drop(received);
            told
        };
        let done =
            timeout_at(TokioInstant::from_std(deadline.answer), self.admission.workers.run(work)).await;
        let why = match done {
            Ok(Ok(told)) => return told,
            // Callers retry after 429, which costs less than the review.
            Ok(Err(NotDone::Overloaded)) => return undecided(&FailureAnswer::overloaded(), None),
            Ok(Err(NotDone::Panicked(text))) => {
                self.admission.metrics.panicked();
                unconverted("failed", &format!("panicked: {text}"))
            }
            Err(_) => unconverted("timeout", "the time for it is over"),
        };
        let id = recover_id(&bytes, false);
        let uid = id.as_ref().map(|id| shown(&id.uid));
        tracing::error!(uid = uid.as_deref(), cause = why.status.message, "objects could not be converted");
        undecided(&why, id.as_ref().map(|id| id.uid.as_str()))
    }
}

fn unconverted(label: &'static str, why: &str) -> FailureAnswer {
    FailureAnswer {
        status: Status::new(Reason::InternalError, format!("the objects could not be converted: {why}")),
        label,
    }
}

fn malformed(why: &str) -> FailureAnswer {
    FailureAnswer {
        status: Status::new(Reason::BadRequest, format!("the {KIND} is malformed: {why}")),
        label: "malformed",
    }
}

fn answer(converters: &Converters, body: &[u8], passed: &dyn Fn() -> bool) -> Decided {
    let (uid, version, objects) = match question(body) {
        Ok(question) => question,
        Err(why) => {
            let id = recover_id(body, false);
            return undecided(&malformed(&why.to_string()), id.as_ref().map(|id| id.uid.as_str()));
        }
    };
    let mut converted = Vec::with_capacity(objects.len());
    for (place, object) in objects.into_iter().enumerate() {
        if passed() {
            return undecided(&unconverted("timeout", "the time for it is over"), Some(&uid));
        }
        match converters.one(object, &version) {
            Ok(object) => converted.push(object),
            Err(why) => {
                tracing::warn!(uid = %shown(&uid), place, %why, "an object cannot be converted");
                return Decided {
                    answer: failure(&uid, &format!("object {place}: {why}")),
                    label: "refused",
                };
            }
        }
    }
    let response = json!({"uid": uid, "convertedObjects": converted, "result": {"status": "Success"}});
    Decided { answer: review(&response), label: "converted" }
}

/// Parses a review: the uid, the desired version, and the objects.
fn question(body: &[u8]) -> Result<(String, String, Vec<Value>), ReviewError> {
    let document = json::parse(body).map_err(ReviewError::Syntax)?;
    if let Some(repeated) = document.duplicates.paths().next() {
        return Err(ReviewError::Duplicate(repeated.to_owned()));
    }
    let mut review = document.value;
    let is = |field: &str, expected: &str| review.get(field).and_then(Value::as_str) == Some(expected);
    if !is("apiVersion", API_VERSION) || !is("kind", KIND) {
        return Err(ReviewError::OtherKind);
    }
    let Some(Value::Object(mut request)) = review.get_mut("request").map(Value::take) else {
        return Err(ReviewError::Missing("request"));
    };
    let mut text = |field: &str, path| match request.shift_remove(field) {
        Some(Value::String(text)) if !text.is_empty() => Ok(text),
        _ => Err(ReviewError::Missing(path)),
    };
    let uid = text("uid", "request.uid")?;
    let version = text("desiredAPIVersion", "request.desiredAPIVersion")?;
    match request.shift_remove("objects") {
        None | Some(Value::Null) => Ok((uid, version, Vec::new())),
        Some(Value::Array(objects)) => Ok((uid, version, objects)),
        Some(_) => Err(ReviewError::InvalidObjects),
    }
}

fn failure(uid: &str, message: &str) -> Answer {
    let result = json!({"status": "Failure", "message": message});
    review(&json!({"uid": uid, "convertedObjects": [], "result": result}))
}

fn review(response: &Value) -> Answer {
    let review = json!({"apiVersion": API_VERSION, "kind": KIND, "response": response});
    Answer { code: StatusCode::OK, body: review.to_string().into() }
}
