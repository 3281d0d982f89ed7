//! Implements the HTTP layer: paths, content negotiation, bodies, watch streams, warnings. The registry carries out
//! requests to resources.

mod accept;
mod access;
mod aggregated;
mod asked_selectors;
pub(crate) mod audited;
mod body;
mod components;
mod connect;
mod connection;
mod deadline;
mod health;
mod impersonation;
mod measured;
mod nonresource;
mod packed;
mod path;
mod pod_log;
mod presentation;
mod resource;
mod respond;
mod reviews;
mod rights;
mod route;
pub(crate) mod serve;
mod stream;
pub(crate) mod tls;

use std::time::Duration;

use admit_apimachinery::go;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use tokio::time::{Instant, timeout_at};

use crate::authorization;
use crate::call::{Query, WriteOptions};
use crate::codec;
use crate::flowcontrol::hangup::Hangup;
use crate::flowcontrol::turns::{self, Ended};
use crate::identity::Identity;
use crate::resources::ResourceInfo;
use crate::server::Server;
use crate::status::Refusal;

use self::accept::Accepted;
use self::audited::Noted;
use self::body::Sent;
use self::path::Target;

/// Says why a request fails.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Answered with a Status.
    Refused(Refusal),
    /// Answered with a plain text page: there is no such path.
    NoSuchPage,
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// The parts of a request.
pub(crate) struct Incoming {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) headers: HeaderMap,
    pub(crate) identity: Identity,
    /// The send deadlines of the connection, if there is one.
    hangup: Option<Hangup>,
    pub(crate) body: Sent,
    /// The data for the audit log, if there is one.
    noted: Option<Noted>,
    /// The deadline of the request, unless it is a stream.
    pub(crate) until: Instant,
}

impl Incoming {
    fn user_agent(&self) -> &str {
        let header = self.headers.get(http::header::USER_AGENT);
        header.and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// # Errors
    /// 422 for unsupported values.
    fn write_options(&self, kind: &'static str) -> Result<WriteOptions, Refusal> {
        WriteOptions::parse(kind, &Query::parse(&self.query), self.user_agent())
    }

    /// Reads the body and options of a creating request, whose response has the form `accepted`.
    ///
    /// # Errors
    /// The first of: the form of the response, the body, the options.
    async fn posted(
        self,
        info: &ResourceInfo,
        accepted: &Accepted,
    ) -> Result<(codec::Body, WriteOptions), Failure> {
        accepted.check()?;
        let options = self.write_options("CreateOptions");
        let body = body::object(info, &self.headers, self.body).await?;
        Ok((body, options?))
    }
}

pub(crate) fn router(server: Server) -> axum::Router {
    axum::Router::new().fallback(handle).with_state(server)
}

/// How long a change waits for a place.
const PATIENCE: Duration = Duration::from_secs(10);

/// Names a request in the audit log, and in those of servers that it is passed on to. Clients may choose it.
const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

async fn handle(State(server): State<Server>, mut request: Request) -> Response {
    let began = Instant::now();
    let id = request.headers().get(AUDIT_ID).filter(|id| !id.is_empty()).cloned();
    let id = id.or_else(|| HeaderValue::try_from(uuid::Uuid::new_v4().to_string()).ok());
    if let Some(id) = &id {
        request.headers_mut().insert(AUDIT_ID, id.clone());
    }
    let ignored_token = access::ignored_token(request.headers());
    let mut response = match server.audit_log().cloned() {
        None => answered(&server, request, None).await,
        Some(log) => {
            let noted = Noted::of(log, &server, &request);
            let response = answered(&server, request, Some(noted.clone())).await;
            noted.finish(response).await
        }
    };
    if let Some(id) = id {
        response.headers_mut().insert(AUDIT_ID, id);
    }
    if let Some(warning) = ignored_token {
        respond::warn(&mut response, &[warning.to_owned()]);
    }
    measured::counted(&server, began, response)
}

async fn answered(server: &Server, request: Request, noted: Option<Noted>) -> Response {
    let (parts, body) = request.into_parts();
    let head = parts.method == Method::HEAD;
    let target = path::parse(parts.uri.path());
    if let Some(response) = unread(&parts.uri, &target) {
        return response;
    }
    let attributes = access::attributes(&parts, &target);
    let reads = matches!(parts.method, Method::GET | Method::HEAD);
    let _under_way = (!access::is_stream(&attributes)).then(|| server.measures().begin(reads));
    let identity = access::identity(server, &parts);
    server.measures().authenticated(identity.as_ref().ok().map(|identity| identity.username.as_str()));
    if let Some(noted) = &noted {
        noted.asks(identity.as_ref().ok(), &attributes);
    }
    let identity = match identity {
        Ok(identity) => identity,
        Err(refusal) => return respond::refusal(&refusal, &Accepted::default()),
    };
    let mut incoming = Incoming {
        method: parts.method,
        path: parts.uri.path().to_owned(),
        query: parts.uri.query().unwrap_or_default().to_owned(),
        headers: parts.headers,
        identity,
        hangup: parts.extensions.get::<Hangup>().cloned(),
        body: Sent::Coming(body),
        noted: noted.clone(),
        until: Instant::now(),
    };
    incoming.identity = match rights::acting(server, incoming.identity, &incoming.headers, &attributes).await
    {
        Ok(identity) => identity,
        Err(refusal) => return respond::not_allowed(&refusal, &Accepted::default()),
    };
    let access = rights::access(server, &incoming.identity, &attributes).await;
    if let Some(noted) = &noted {
        noted.authorized(&incoming.identity, access.as_ref().ok());
    }
    server.measures().authorized(access.as_ref().ok().map(|access| access.allowed));
    let allowed = access.and_then(|access| authorization::allowed(&access, &incoming.identity, &attributes));
    let mut response = in_turn(server, incoming, target, allowed).await;
    if head {
        *response.body_mut() = Body::empty();
    }
    response
}

/// Answers a path from which no request can be derived, without authentication; None for all other paths.
fn unread(uri: &http::Uri, target: &Target) -> Option<Response> {
    match target {
        Target::Resource(_) | Target::Other => None,
        Target::Broken => Some(respond::plain(400, "400 Bad Request")),
        Target::Verb => {
            let at = uri.path_and_query().map_or_else(|| uri.path().to_owned(), ToString::to_string);
            Some(respond::page(
                500,
                format!(
                    "Internal Server Error: {}: failed to create RequestInfo: unable to determine kind and namespace \
                     from url, {at}\n",
                    go::quote(&at)
                ),
            ))
        }
    }
}

/// Answers a request on the right thread: changes and long responses on threads of their own, everything short
/// at once.
async fn in_turn(
    server: &Server,
    mut incoming: Incoming,
    target: Target,
    allowed: Result<(), Refusal>,
) -> Response {
    let patience = match deadline::of(&incoming, &target) {
        Ok(patience) => patience,
        Err(refusal) => {
            let told_in = Accepted::parse_whole(&incoming.headers, &incoming.query);
            return respond::refusal(&refusal, &told_in);
        }
    };
    incoming.until += patience.unwrap_or_default();
    let until = incoming.until;
    let elsewhere = allowed.is_ok().then(|| aggregated::delegated(server, &target, &incoming.path)).flatten();
    let reads = matches!(incoming.method, Method::GET | Method::HEAD | Method::OPTIONS);
    if reads && let Some(elsewhere) = elsewhere {
        return Box::pin(aggregated::forward(server, &elsewhere, incoming)).await;
    }
    // Boxed, so that the large future is not copied whenever its parent is moved.
    if allowed.is_err() || (reads && !is_long(&incoming, &target)) {
        return Box::pin(route(server, incoming, target, allowed)).await;
    }
    let (turns, shared) = (server.turns(), server.clone());
    if reads {
        let user = incoming.identity.clone();
        let work = move || async move { route(&shared, incoming, target, allowed).await };
        return outcome(turns.list(&user, until, work).await);
    }
    let Ok(Some(place)) = tokio::time::timeout(PATIENCE, turns.place(&incoming.identity)).await else {
        tracing::warn!("as many changes are under way as are allowed: one was sent away");
        let refusal = Refusal::too_many_requests("Too many requests, please try again later.", 1);
        return respond::refusal(&refusal, &Accepted::default());
    };
    // A body that arrives slowly holds no thread.
    if timeout_at(until, incoming.body.arrive()).await.is_err() {
        return respond::refusal(&Refusal::timed_out(), &Accepted::default());
    }
    if let (Some(noted), Sent::Arrived(Ok(bytes))) = (&incoming.noted, &incoming.body) {
        noted.sent(bytes);
    }
    if let Some(elsewhere) = elsewhere {
        let _place = place;
        return Box::pin(aggregated::forward(server, &elsewhere, incoming)).await;
    }
    let named = !matches!(&target, Target::Resource(place) if place.name.is_none());
    let many = incoming.method == Method::DELETE && !named;
    let lane = turns.lane(incoming.body.len(), many);
    let work = move || {
        Box::pin(async move {
            let _place = place;
            route(&shared, incoming, target, allowed).await
        })
    };
    outcome(turns::run(until, Some(lane), work).await)
}

/// Returns whether a read is for OpenAPI documents or runs admission. Lists enter their lane once there is memory for them.
fn is_long(incoming: &Incoming, target: &Target) -> bool {
    match target {
        Target::Resource(place) => deadline::streams(place),
        Target::Other | Target::Verb | Target::Broken => incoming.path.starts_with("/openapi/"),
    }
}

fn outcome(outcome: Result<Response, Ended>) -> Response {
    outcome.unwrap_or_else(|ended| respond::refusal(&ended.into(), &Accepted::default()))
}

async fn route(
    server: &Server,
    incoming: Incoming,
    target: Target,
    allowed: Result<(), Refusal>,
) -> Response {
    // A Status has one form only.
    let told_in = Accepted::parse_whole(&incoming.headers, &incoming.query);
    if let Err(refusal) = allowed {
        return respond::not_allowed(&refusal, &told_in);
    }
    let outcome = match target {
        Target::Resource(place) => resource::answer(server, place, incoming).await,
        Target::Other | Target::Verb | Target::Broken => nonresource::answer(server, &incoming),
    };
    match outcome {
        Ok(response) => response,
        Err(Failure::Refused(refusal)) => respond::refusal(&refusal, &told_in),
        Err(Failure::NoSuchPage) => respond::page_not_found(),
    }
}
