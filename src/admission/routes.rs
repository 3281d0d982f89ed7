//! Routes the requests of the webhook's listener.
//!
//! | route | asks |
//! |---|---|
//! | `/validate` | every policy that matches, and the definitions of custom resources |
//! | `/validate/POLICY` | that policy alone |
//! | `/enforce` | policies that may deny, and the definitions: register it with `failurePolicy: Fail` |
//! | `/audit` | policies that can only warn or audit; never denies: register it with `failurePolicy: Ignore` |
//! | `/mutate` | policies that change objects; answers with a JSON patch |
//! | `/convert` | how objects read in another version ([`super::convert`]) |
//!
//! A policy may deny if a binding says so, or if it fails when it cannot be applied (`Policy::may_deny`): one that only
//! warns, but has params that may be missing, is evaluated by `/enforce`.
//!
//! A request with a uid is answered by a review with HTTP status 200; requests that are rejected before the review was parsed (size,
//! time, overload) get a Kubernetes `Status` with its own code, to which the caller's failure policy applies.
//! [`super::failure_answer`] has the table.

use std::sync::Arc;
use std::time::{Duration, Instant};

use admit_apimachinery::status::{Reason, Status};
use admit_policy::{Arena, Request};
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use tokio::sync::watch;
use tokio::time::{Instant as TokioInstant, timeout_at};

use super::body::{BODY_TIMEOUT, BodyMemory, MAX_BODY, NoBody, Received};
use super::converters::Converters;
use super::deadline::Deadline;
use super::decide::{Patience, decide};
use super::decisions::Decisions;
use super::failure_answer::FailureAnswer;
use super::log;
use super::policy_host::Cluster;
use super::review::{Answer, Decided, read, recover_id};
use super::snapshot::{Ask, InForce};
use super::workers::{Gone, NotDone, Workers};
use crate::telemetry::{Metrics, Readiness, Trace, Traces};

/// What the routes use to decide: always the newest complete set.
#[derive(Clone, Debug)]
pub struct Admission {
    pub policies: watch::Receiver<Arc<InForce>>,
    pub cluster: Cluster,
    pub workers: Workers,
    pub metrics: Arc<Metrics>,
    pub traces: Traces,
    pub readiness: Readiness,
    /// The converters for `/convert`.
    pub converters: Converters,
    /// Whether reviews of `admission.k8s.io/v1beta1` are answered, in that version.
    pub beta: bool,
    /// The time limit for a request, also if the caller would wait longer.
    pub timeout: Duration,
}

#[derive(Clone, Debug)]
pub(super) struct Context {
    pub(super) admission: Admission,
    pub(super) memory: BodyMemory,
    /// Where decisions are recorded, if anybody watches them.
    decisions: Option<Decisions>,
}

impl Admission {
    /// Creates the router for the table above, with the probes.
    pub fn router(self) -> Router {
        self.routes(None)
    }

    /// Does the same, and records every decision.
    pub fn watched(self, decisions: Decisions) -> Router {
        self.routes(Some(decisions))
    }

    fn routes(self, decisions: Option<Decisions>) -> Router {
        let readiness = self.readiness.clone();
        let context = Context { admission: self, memory: BodyMemory::default(), decisions };
        Router::new()
            .route("/validate", post(everything))
            .route("/validate/{policy}", post(one))
            .route("/enforce", post(enforcing))
            .route("/audit", post(auditing))
            .route("/mutate", post(mutating))
            .route("/convert", post(converting))
            .with_state(context)
            .route("/livez", get(|| async { "ok" }))
            .route("/readyz", get(|| async move { readyz(&readiness) }))
    }
}

/// Returns the readiness: 200 or 503, and a line for each part.
pub(super) fn readyz(readiness: &Readiness) -> Response {
    readiness.answer().into_response()
}

async fn everything(State(context): State<Context>, uri: Uri, headers: HeaderMap, body: Body) -> Response {
    context.answer(Ask::Everything, &uri, &headers, body).await
}

async fn enforcing(State(context): State<Context>, uri: Uri, headers: HeaderMap, body: Body) -> Response {
    context.answer(Ask::Enforcing, &uri, &headers, body).await
}

async fn auditing(State(context): State<Context>, uri: Uri, headers: HeaderMap, body: Body) -> Response {
    context.answer(Ask::Auditing, &uri, &headers, body).await
}

async fn mutating(State(context): State<Context>, uri: Uri, headers: HeaderMap, body: Body) -> Response {
    context.answer(Ask::Mutating, &uri, &headers, body).await
}

async fn converting(State(context): State<Context>, uri: Uri, headers: HeaderMap, body: Body) -> Response {
    context.convert(&uri, &headers, body).await
}

async fn one(
    State(context): State<Context>,
    Path(policy): Path<String>,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Response {
    context.answer(Ask::One(policy), &uri, &headers, body).await
}

impl Context {
    async fn answer(self, ask: Ask, uri: &Uri, headers: &HeaderMap, body: Body) -> Response {
        let (started, route) = (Instant::now(), ask.label());
        let deadline = Deadline::new(started, self.admission.timeout, uri.query());
        let metrics = Arc::clone(&self.admission.metrics);
        let mut trace = self.admission.traces.begin(route, headers);
        let Decided { answer, label } = self.decided(ask, deadline, headers, body, &mut trace).await;
        metrics.request(route, label, started.elapsed());
        trace.note("admission.answer", label);
        trace.note("http.response.status_code", i64::from(answer.code.as_u16()));
        if !matches!(label, "allowed" | "denied") {
            trace.failed(label);
        }
        answer.into_response()
    }

    async fn decided(
        self,
        ask: Ask,
        deadline: Deadline,
        headers: &HeaderMap,
        body: Body,
        trace: &mut Trace,
    ) -> Decided {
        if !is_json(headers) {
            return no_json().answer(&ask, None, &self.admission.metrics);
        }
        // The set that is newest at this moment decides the whole request.
        let in_force = Arc::clone(&self.admission.policies.borrow());
        if let Ask::One(policy) = &ask
            && !in_force.has(policy)
        {
            let message = format!("no policy `{policy}` is loaded");
            let answer = Answer::plain(&Status::new(Reason::NotFound, message));
            return Decided { answer, label: "malformed" };
        }
        let Received { bytes, share } = match self.memory.receive(headers, body).await {
            Ok(received) => received,
            Err(problem) => return no_body(problem).answer(&ask, None, &self.admission.metrics),
        };
        let (cluster, metrics) = (self.admission.cluster.clone(), Arc::clone(&self.admission.metrics));
        let (review, beta, traced) = (bytes.clone(), self.admission.beta, trace.is_recorded());
        let (asked, converters) = (ask.clone(), self.admission.converters.clone());
        let decisions = self.decisions.clone();
        let work = move |gone: &Gone<'_>| {
            let mut about = Vec::new();
            let arena = Arena::for_text(review.len());
            let decided = match read(&arena, &review, beta) {
                Ok(question) => {
                    if traced {
                        about = told_of(&question.request);
                    }
                    let patience = Patience { until: deadline.evaluation, gone };
                    let told = (&*metrics, decisions.as_ref());
                    decide(&question, &ask, &in_force, (&cluster, &converters), &patience, told)
                }
                Err(unreadable) => {
                    FailureAnswer::malformed(&unreadable).answer(&ask, unreadable.id.as_ref(), &metrics)
                }
            };
            // The body's memory counts until the work is done.
            drop(share);
            (decided, about)
        };
        let done =
            timeout_at(TokioInstant::from_std(deadline.answer), self.admission.workers.run(work)).await;
        let undecided = match done {
            Ok(Ok((decided, about))) => {
                about.into_iter().for_each(|(key, value)| trace.note(key, value));
                return decided;
            }
            Ok(Err(NotDone::Overloaded)) => FailureAnswer::overloaded(),
            Ok(Err(NotDone::Panicked(text))) => {
                self.admission.metrics.panicked();
                FailureAnswer::of("failed", &format!("panicked: {text}"))
            }
            Err(_) => FailureAnswer::of("timeout", "the time for it is over"),
        };
        self.without_decision(&undecided, &asked, &bytes)
    }

    /// Creates the response to a review that was not parsed, except perhaps for its id.
    fn without_decision(&self, undecided: &FailureAnswer, ask: &Ask, review: &[u8]) -> Decided {
        let overloaded = undecided.status.code == Reason::TooManyRequests.code();
        // Under overload, callers of policies that may deny retry or apply their failure policy: both cost less than the review.
        let id =
            if overloaded && *ask != Ask::Auditing { None } else { recover_id(review, self.admission.beta) };
        if !overloaded {
            let uid = id.as_ref().map(|id| log::shown(&id.uid));
            tracing::error!(
                uid = uid.as_deref(),
                cause = undecided.status.message,
                "a request could not be decided"
            );
        }
        undecided.answer(ask, id.as_ref(), &self.admission.metrics)
    }
}

/// Returns the trace attributes of a request, without its contents.
fn told_of(request: &Request<'_>) -> Vec<(&'static str, String)> {
    vec![
        ("admission.uid", request.uid.clone()),
        ("admission.operation", request.operation.to_string()),
        ("admission.resource", request.resource.group_resource()),
        ("admission.subresource", request.subresource.clone()),
        ("admission.namespace", request.namespace.clone()),
        ("admission.name", request.name.clone()),
    ]
}

pub(super) fn is_json(headers: &HeaderMap) -> bool {
    headers.get(header::CONTENT_TYPE).is_some_and(|value| value.as_bytes().starts_with(b"application/json"))
}

pub(super) fn no_json() -> FailureAnswer {
    FailureAnswer {
        status: Status::new(
            Reason::UnsupportedMediaType,
            "the body of a review is `application/json`".to_owned(),
        ),
        label: "malformed",
    }
}

pub(super) fn no_body(problem: NoBody) -> FailureAnswer {
    let (status, label) = match problem {
        NoBody::TooLarge => {
            let message = format!("the review is larger than {MAX_BODY} bytes");
            (Status::new(Reason::RequestEntityTooLarge, message), "too_large")
        }
        NoBody::TooSlow => {
            let message = format!("the body did not arrive within {} seconds", BODY_TIMEOUT.as_secs());
            // 408 and not 504: the client was slow, not the server.
            let code = StatusCode::REQUEST_TIMEOUT.as_u16();
            (Status { code, ..Status::new(Reason::Timeout, message) }, "timeout")
        }
        NoBody::BrokenOff => (Status::new(Reason::BadRequest, "the body broke off"), "malformed"),
        NoBody::NoMemory => return FailureAnswer::overloaded(),
    };
    FailureAnswer { status, label }
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        let code = self.code;
        let mut response = (code, [(header::CONTENT_TYPE, "application/json")], self.body).into_response();
        if code == StatusCode::TOO_MANY_REQUESTS {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}
