//! Collects what a request's audit events need, and writes them. A policy sets their level and stages; without a policy there
//! is one event, of the stage `ResponseComplete`, or of `ResponseStarted` for streamed responses, at this level:
//!
//! | request | level |
//! |---|---|
//! | for Secrets, ConfigMaps, TokenReviews and tokens, and for paths that are no resource | `Metadata` |
//! | for a read | `Request` |
//! | any other | `RequestResponse` |

mod event;
mod legacy;

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use admit_policy::{Access, AccessAttributes};
use axum::body::{Body, HttpBody as _};
use axum::extract::Request;
use axum::response::Response;
use bytes::Bytes;
use http::header;
use http_body_util::{BodyExt as _, Collected};
use jiff::Timestamp;
use serde_json::Value;

use self::event::{Answered, format_of};
use super::AUDIT_ID;
use super::access::is_stream;
use super::connection::Peer;
use crate::audit::{AuditFormat, AuditLog, Level, Recorded, Stage};
use crate::clock::Clock;
use crate::identity::Identity;
use crate::server::Server;

/// Audit annotations, attached to a response.
#[derive(Clone, Debug)]
pub(crate) struct Annotations(pub(crate) Vec<(String, String)>);

/// Collects data for a request's audit events. Clones share the data.
#[derive(Clone, Debug)]
pub(super) struct Noted(Arc<Mutex<Notes>>);

#[derive(Debug)]
struct Notes {
    log: AuditLog,
    clock: Clock,
    /// The decision of the policy; None without a policy, or if the request is not to be written.
    recorded: Option<Recorded>,
    id: String,
    received: Timestamp,
    uri: String,
    method: String,
    user_agent: String,
    source_ips: Vec<IpAddr>,
    content_type: String,
    /// The authenticated user, and the user that the request acts as.
    user: Option<Identity>,
    acting: Option<Identity>,
    attributes: Option<AccessAttributes>,
    /// The authorizer's decision, once it is known.
    access: Option<Access>,
    sent: Bytes,
}

impl Noted {
    pub(super) fn of(log: AuditLog, server: &Server, request: &Request) -> Self {
        let text = |name| {
            let value = request.headers().get(name).and_then(|value: &http::HeaderValue| value.to_str().ok());
            value.unwrap_or_default().to_owned()
        };
        Self(Arc::new(Mutex::new(Notes {
            log,
            clock: server.clock().clone(),
            recorded: None,
            id: request
                .headers()
                .get(AUDIT_ID)
                .map(|id| String::from_utf8_lossy(id.as_bytes()).into_owned())
                .unwrap_or_default(),
            received: server.clock().now(),
            uri: request.uri().path_and_query().map(ToString::to_string).unwrap_or_default(),
            method: request.method().as_str().to_lowercase(),
            user_agent: truncated(text(header::USER_AGENT)),
            source_ips: source_ips(request),
            content_type: text(header::CONTENT_TYPE),
            user: None,
            acting: None,
            attributes: None,
            access: None,
            sent: Bytes::new(),
        })))
    }

    fn note(&self, change: impl FnOnce(&mut Notes)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Records the attributes and, if it is known, the user.
    pub(super) fn asks(&self, user: Option<&Identity>, attributes: &AccessAttributes) {
        self.note(|notes| {
            notes.user = user.cloned();
            notes.attributes = Some(attributes.clone());
            notes.recorded = notes.log.policy().and_then(|policy| policy.recorded(attributes, user));
            if notes.recorded.is_some() && user.is_some() {
                notes.write(Stage::RequestReceived, None);
            }
        });
    }

    pub(super) fn authorized(&self, acting: &Identity, access: Option<&Access>) {
        self.note(|notes| {
            notes.acting = Some(acting.clone());
            notes.access = access.cloned();
        });
    }

    pub(super) fn sent(&self, bytes: &Bytes) {
        self.note(|notes| notes.sent = bytes.clone());
    }

    /// Writes the events of the request that `response` answers.
    pub(super) async fn finish(self, mut response: Response) -> Response {
        let annotations = response.extensions_mut().remove::<Annotations>();
        // The body of a stream has no length; it is not recorded.
        let streams = response.body().size_hint().exact().is_none();
        let (parts, body) = response.into_parts();
        let (bytes, body) = if streams {
            (Bytes::new(), body)
        } else {
            let bytes = body.collect().await.map(Collected::to_bytes).unwrap_or_default();
            (bytes.clone(), Body::from(bytes))
        };
        let answered = Answered {
            code: parts.status.as_u16(),
            body: if parts.headers.contains_key(header::CONTENT_ENCODING) { Bytes::new() } else { bytes },
            format: format_of(&parts.headers),
            annotations,
        };
        let goes_on = {
            let notes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            notes.answered(&answered, streams)
        };
        if !goes_on {
            return Response::from_parts(parts, body);
        }
        let ending = Ending { noted: self, answered };
        let body = body.map_frame(move |frame| {
            let _ends_with_the_body = &ending;
            frame
        });
        Response::from_parts(parts, Body::new(body))
    }
}

/// Writes the last event of a streamed response when it ends or the client leaves.
struct Ending {
    noted: Noted,
    answered: Answered,
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.noted.note(|notes| notes.write(Stage::ResponseComplete, Some(&self.answered)));
    }
}

impl Notes {
    /// Writes the events that are due with the response; returns whether another is due when it ends.
    fn answered(&self, answered: &Answered, streams: bool) -> bool {
        // Without an identity the request is refused before it counts as received.
        if self.attributes.is_some() && self.user.is_none() {
            self.write(Stage::ResponseStarted, Some(answered));
            return false;
        }
        if self.log.policy().is_none() {
            let stage = if streams { Stage::ResponseStarted } else { Stage::ResponseComplete };
            self.write(stage, Some(answered));
            return false;
        }
        if self.attributes.as_ref().is_some_and(is_stream) {
            self.write(Stage::ResponseStarted, Some(answered));
        }
        if !streams {
            self.write(Stage::ResponseComplete, Some(answered));
        }
        streams
    }

    /// Writes the event of a stage, unless a policy omits it.
    fn write(&self, stage: Stage, answered: Option<&Answered>) {
        let (verb, about) = self.asked();
        let level = match self.recorded {
            Some(recorded) if recorded.at(stage) => recorded.level,
            None if self.log.policy().is_none() => level(&verb, about.as_ref()),
            _ => return,
        };
        let event = self.event(stage, level, &verb, about, answered);
        let line = match self.log.format() {
            AuditFormat::Json => format!("{event}\n"),
            AuditFormat::Legacy => legacy::line(self.received, &event),
        };
        self.log.add(line.into_bytes());
    }
}

/// The number of bytes of a user agent that are logged.
const LONGEST_AGENT: usize = 1_024;

fn truncated(mut agent: String) -> String {
    if agent.len() > LONGEST_AGENT {
        agent.truncate(agent.floor_char_boundary(LONGEST_AGENT));
        agent.push_str("...TRUNCATED");
    }
    agent
}

/// Returns the addresses that proxies report, then that of the connection, the only reliable one.
fn source_ips(request: &Request) -> Vec<IpAddr> {
    let told =
        |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let read = |text: &str| text.trim().parse::<IpAddr>().ok().map(|ip| ip.to_canonical());
    let mut all: Vec<IpAddr> = told("x-forwarded-for").split(',').filter_map(read).collect();
    all.extend(read(told("x-real-ip")).filter(|ip| !all.contains(ip)));
    let peer = request.extensions().get::<Peer>().map(|peer| peer.0.to_canonical());
    all.extend(peer.filter(|ip| all.last() != Some(ip)));
    all
}

/// Returns the audit level of a request without a policy.
fn level(verb: &str, about: Option<&Value>) -> Level {
    let Some(about) = about else { return Level::Metadata };
    let text = |field: &str| about.get(field).and_then(Value::as_str).unwrap_or_default();
    match (text("apiGroup"), text("resource"), text("subresource")) {
        ("", "secrets" | "configmaps", _)
        | ("authentication.k8s.io", "tokenreviews", _)
        | ("", "serviceaccounts", "token") => Level::Metadata,
        _ if matches!(verb, "get" | "list" | "watch") => Level::Request,
        _ => Level::RequestResponse,
    }
}
