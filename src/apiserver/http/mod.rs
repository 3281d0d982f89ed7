//! The HTTP face: paths, negotiation, bodies, watch streams, warnings. Everything a resource means is the registry's.

mod accept;
mod access;
pub(crate) mod answers;
mod body;
mod budget;
mod components;
mod connect;
mod connection;
mod hangup;
mod health;
mod impersonation;
mod nonresource;
mod path;
mod resource;
mod respond;
mod reviews;
pub(crate) mod serve;
mod stream;
pub(crate) mod watchers;

use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use http::{HeaderMap, Method};

use crate::codec;
use crate::identity::Identity;
use crate::registry::{Query, WriteOptions};
use crate::resources::ResourceInfo;
use crate::server::Server;
use crate::status::Refusal;

use self::accept::Accepted;
use self::hangup::Hangup;
use self::path::Target;

/// Why a request has no answer of its own.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A Status.
    Refused(Refusal),
    /// No such path: plain text.
    NoSuchPage,
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// A request, taken apart.
pub(crate) struct Incoming {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) headers: HeaderMap,
    pub(crate) identity: Identity,
    /// Of the connection, where there is one.
    hangup: Option<Hangup>,
    pub(crate) body: Body,
}

impl Incoming {
    fn user_agent(&self) -> &str {
        let header = self.headers.get(http::header::USER_AGENT);
        header.and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// # Errors
    /// 422 for values that are none of the supported ones.
    fn write_options(&self, kind: &'static str) -> Result<WriteOptions, Refusal> {
        WriteOptions::parse(kind, &Query::parse(&self.query), self.user_agent())
    }

    /// What a request that creates something was sent with, whose answer `accepted` is to be the form of.
    ///
    /// # Errors
    /// As those of its parts: the answer's form first, then the options, then the body.
    async fn posted(
        self,
        info: &ResourceInfo,
        accepted: &Accepted,
    ) -> Result<(codec::Body, WriteOptions), Failure> {
        accepted.check()?;
        let options = self.write_options("CreateOptions")?;
        Ok((body::object(info, &self.headers, self.body).await?, options))
    }
}

pub(crate) fn router(server: Server) -> axum::Router {
    axum::Router::new().fallback(handle).with_state(server)
}

/// As upstream, so many requests that change something are looked at at one time: each may hold a body of 3 MiB, and what
/// was made of it.
pub(crate) const MAX_CHANGES: usize = 200;
/// A change that finds no place waits so long for one.
const PATIENCE: Duration = Duration::from_secs(10);

async fn handle(State(server): State<Server>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let head = parts.method == Method::HEAD;
    let identity = match access::identity(&server, &parts) {
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
        body,
    };
    let target = path::parse(&incoming.path);
    let attributes = access::attributes(&incoming, &target);
    let acting = impersonation::acting(server.registry(), incoming.identity, &incoming.headers, &attributes);
    incoming.identity = match acting {
        Ok(identity) => identity,
        Err(refusal) => return respond::not_allowed(&refusal, &Accepted::default()),
    };
    let allowed = server.registry().authorize(&incoming.identity, &attributes);
    let mut response = in_turn(&server, incoming, target, allowed).await;
    if head {
        *response.body_mut() = Body::empty();
    }
    response
}

/// Answers a request once there is a place for it: reads, and watches among them, always have one.
async fn in_turn(
    server: &Server,
    incoming: Incoming,
    target: Target,
    allowed: Result<(), Refusal>,
) -> Response {
    if matches!(incoming.method, Method::GET | Method::HEAD | Method::OPTIONS) || allowed.is_err() {
        return route(server, incoming, target, allowed).await;
    }
    match tokio::time::timeout(PATIENCE, server.changes().acquire()).await {
        Ok(_place) => route(server, incoming, target, allowed).await,
        Err(_) => {
            tracing::warn!("as many changes are under way as are allowed: one was sent away");
            let refusal = Refusal::too_many_requests("Too many requests, please try again later.", 1);
            respond::refusal(&refusal, &Accepted::default())
        }
    }
}

async fn route(
    server: &Server,
    incoming: Incoming,
    target: Target,
    allowed: Result<(), Refusal>,
) -> Response {
    let accepted = Accepted::parse(&incoming.headers, &incoming.query, true);
    if let Err(refusal) = allowed {
        return respond::not_allowed(&refusal, &accepted);
    }
    let outcome = match target {
        Target::Resource(place) => resource::answer(server, place, incoming, &accepted).await,
        Target::Other => {
            let accepted = Accepted::parse(&incoming.headers, &incoming.query, false);
            nonresource::answer(server, &incoming, &accepted)
        }
    };
    match outcome {
        Ok(response) => response,
        Err(Failure::Refused(refusal)) => respond::refusal(&refusal, &accepted),
        Err(Failure::NoSuchPage) => respond::page_not_found(),
    }
}
