//! The routes of the webhook port.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use admit_policy::decision::Denial;
use admit_policy::host::{Access, AccessAttributes, Host, HostError, Scope};
use admit_policy::request::{GroupVersionKind, GroupVersionResource, Request, UserInfo};
use admit_policy::{Documents, PolicySet};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use http::{HeaderMap, StatusCode, header};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::timeout;

use super::Answer;

/// Two objects of 3 MiB, the most an API server takes, with their envelope.
const MAX_BODY: usize = 8 * 1024 * 1024;
/// A body must arrive within this time.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// The namespaces of the cluster by name: live objects, kept by whoever watches them.
pub type Namespaces = HashMap<String, Arc<Value>>;

/// What the routes decide with: always the newest complete set.
#[derive(Clone, Debug)]
pub struct Admission {
    pub policies: watch::Receiver<Arc<PolicySet>>,
    pub namespaces: watch::Receiver<Arc<Namespaces>>,
}

impl Admission {
    /// `POST /validate` and the probes.
    pub fn router(self) -> Router {
        Router::new()
            .route("/validate", post(validate))
            .route("/livez", get(|| async { "ok" }))
            .route("/readyz", get(|| async { "ok" }))
            .with_state(self)
    }
}

async fn validate(State(admission): State<Admission>, headers: HeaderMap, body: Body) -> Response {
    let json =
        headers.get(header::CONTENT_TYPE).is_some_and(|v| v.as_bytes().starts_with(b"application/json"));
    if !json {
        let message = "the body of a review is `application/json`";
        return Answer::plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message)
            .into_response();
    }
    let body = match timeout(BODY_TIMEOUT, to_bytes(body, MAX_BODY)).await {
        Ok(Ok(body)) => body,
        Ok(Err(_)) => {
            let message = format!("the review is larger than {MAX_BODY} bytes, or its body broke off");
            return Answer::plain(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", &message)
                .into_response();
        }
        Err(_) => {
            let message = format!("the body did not arrive within {} seconds", BODY_TIMEOUT.as_secs());
            return Answer::plain(StatusCode::REQUEST_TIMEOUT, "Timeout", &message).into_response();
        }
    };
    // Deciding is work for the processor, not a wait: it does not belong on the threads that carry connections.
    let request = match tokio::task::spawn_blocking(move || Request::from_review_json(&body)).await {
        Ok(Ok(request)) => request,
        Ok(Err(error)) => return Answer::malformed(&error).into_response(),
        Err(failure) => {
            let message = format!("the review could not be read: {}", panic_text(failure));
            return Answer::plain(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", &message)
                .into_response();
        }
    };
    decide(admission, request).await.into_response()
}

async fn decide(admission: Admission, request: Request) -> Answer {
    let uid = request.uid.clone();
    let policies = admission.policies.borrow().clone();
    let namespaces = admission.namespaces.borrow().clone();
    let decided = tokio::task::spawn_blocking(move || {
        let host = Surroundings { files: policies.documents(), namespaces: &namespaces };
        let decision = policies.decide(&request, &host)?;
        if let Some(denial) = &decision.denial {
            log_denial(&request, denial);
        }
        Ok::<_, HostError>(decision)
    });
    let (message, uid) = match decided.await {
        Ok(Ok(decision)) => return Answer::decided(&uid, &decision),
        Ok(Err(error)) => (error.to_string(), uid),
        Err(failure) => (panic_text(failure), uid),
    };
    tracing::error!(uid, cause = message, "a request could not be decided and is denied");
    let message = format!("the policies could not be evaluated: {message}");
    Answer::failed(&uid, StatusCode::INTERNAL_SERVER_ERROR, "InternalError", &message)
}

/// One line per denial; nothing of the object's content but its name.
fn log_denial(request: &Request, denial: &Denial) {
    tracing::info!(
        uid = request.uid,
        operation = %request.operation,
        resource = request.resource.group_resource(),
        subresource = request.subresource,
        namespace = request.namespace,
        name = request.name,
        user = request.user.username,
        reason = denial.message,
        "denied"
    );
}

/// What a panic said, as far as it is text. One request ends with it; the process goes on.
fn panic_text(failure: tokio::task::JoinError) -> String {
    let text = |payload: Box<dyn Any + Send>| {
        payload
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "no message".to_owned())
    };
    failure.try_into_panic().map_or_else(|_| "cancelled".to_owned(), text)
}

/// Answers from the loaded files, and for namespaces from the cluster where it knows them.
#[derive(Debug)]
struct Surroundings<'a> {
    files: &'a Documents,
    namespaces: &'a Namespaces,
}

impl Host for Surroundings<'_> {
    fn namespace(&self, name: &str) -> Result<Option<Arc<Value>>, HostError> {
        match self.namespaces.get(name) {
            Some(namespace) => Ok(Some(namespace.clone())),
            None => self.files.namespace(name),
        }
    }

    fn param_scope(&self, kind: &GroupVersionKind) -> Option<Scope> {
        self.files.param_scope(kind)
    }

    fn params(&self, kind: &GroupVersionKind, namespace: &str) -> Result<Vec<Arc<Value>>, HostError> {
        self.files.params(kind, namespace)
    }

    fn equivalents(
        &self,
        resource: &GroupVersionResource,
        subresource: &str,
    ) -> Vec<(GroupVersionResource, GroupVersionKind)> {
        self.files.equivalents(resource, subresource)
    }

    fn convert(&self, object: &Value, kind: &GroupVersionKind) -> Result<Value, HostError> {
        self.files.convert(object, kind)
    }

    fn authorize(&self, user: &UserInfo, attributes: &AccessAttributes) -> Result<Access, HostError> {
        self.files.authorize(user, attributes)
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        (self.code, axum::Json(self.body)).into_response()
    }
}
