//! Makes the audit events of a request, in the shape of `audit.k8s.io/v1`. A policy says at which level and stages; without one
//! there is one event, of the stage `ResponseComplete`, or of `ResponseStarted` for answers that are streams, at this level:
//!
//! | request | level |
//! |---|---|
//! | of Secrets, ConfigMaps, TokenReviews and tokens, and about no resource | `Metadata` |
//! | that reads | `Request` |
//! | any other | `RequestResponse` |

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use admit_policy::{Access, AccessAttributes};
use axum::body::{Body, HttpBody as _};
use axum::extract::Request;
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, header};
use http_body_util::{BodyExt as _, Collected};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::connection::Peer;
use crate::audit::{AuditLog, Level, Recorded, Stage};
use crate::clock::Clock;
use crate::codec::{self, Format};
use crate::identity::Identity;
use crate::server::Server;

/// The annotations that policies make, on their way out of a request.
#[derive(Clone, Debug)]
pub(crate) struct Annotations(pub(crate) Vec<(String, String)>);

/// What is noted of a request on its way.
#[derive(Clone, Debug)]
pub(super) struct Noted(Arc<Mutex<Notes>>);

#[derive(Debug)]
struct Notes {
    log: AuditLog,
    clock: Clock,
    /// What the policy says, where there is one and the request is to be written.
    recorded: Option<Recorded>,
    id: String,
    received: Timestamp,
    uri: String,
    method: String,
    user_agent: String,
    source_ips: Vec<IpAddr>,
    content_type: String,
    /// Who sent the request, and whoever acts.
    user: Option<Identity>,
    acting: Option<Identity>,
    attributes: Option<AccessAttributes>,
    /// Whether it is allowed and why, where that was asked.
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
            id: uuid::Uuid::new_v4().to_string(),
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

    /// What is asked, and by whom, where that is known.
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

    /// Writes the events of the request, which is answered by `response`.
    pub(super) async fn finish(self, mut response: Response) -> Response {
        let annotations = response.extensions_mut().remove::<Annotations>();
        // A stream has no length: it may go on for long, and shows nothing of its own.
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

/// The answer to a request.
struct Answered {
    code: u16,
    body: Bytes,
    format: Format,
    annotations: Option<Annotations>,
}

/// A request whose answer goes on for long: it is complete when there is no more of it, or nobody who wants it.
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
    /// Writes what there is to write when the answer is there. Whether there will be more when it has ended.
    fn answered(&self, answered: &Answered, streams: bool) -> bool {
        // Who is not known is refused before the request counts as received.
        if self.attributes.is_some() && self.user.is_none() {
            self.write(Stage::ResponseStarted, Some(answered));
            return false;
        }
        if self.log.policy().is_none() {
            let stage = if streams { Stage::ResponseStarted } else { Stage::ResponseComplete };
            self.write(stage, Some(answered));
            return false;
        }
        if self.attributes.as_ref().is_some_and(is_long) {
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
        let mut line = self.event(stage, level, &verb, about, answered).to_string();
        line.push('\n');
        self.log.add(line.into_bytes());
    }

    fn event(
        &self,
        stage: Stage,
        level: Level,
        verb: &str,
        mut about: Option<Value>,
        answered: Option<&Answered>,
    ) -> Value {
        let sent = self.sent(level, verb).filter(|_| answered.is_some());
        let mut event = Map::new();
        let mut set = |field: &str, value: Value| drop(event.insert(field.to_owned(), value));
        set("kind", "Event".into());
        set("apiVersion", "audit.k8s.io/v1".into());
        set("level", level.name().into());
        set("auditID", self.id.as_str().into());
        set("stage", stage.name().into());
        set("requestURI", self.uri.as_str().into());
        set("verb", verb.into());
        set("user", self.user.as_ref().map_or_else(|| json!({}), Identity::user_info));
        if let Some(acting) = self.acting.as_ref().filter(|acting| Some(*acting) != self.user.as_ref()) {
            set("impersonatedUser", acting.user_info());
        }
        if !self.source_ips.is_empty() {
            let shown: Vec<String> = self.source_ips.iter().map(ToString::to_string).collect();
            set("sourceIPs", shown.into());
        }
        if !self.user_agent.is_empty() {
            set("userAgent", self.user_agent.as_str().into());
        }
        if let (Some(about), Some(sent)) = (&mut about, &sent)
            && creates_or_replaces(verb)
        {
            complete(about, sent);
        }
        if let Some(about) = about {
            set("objectRef", about);
        }
        if let Some(answered) = answered {
            let is_told =
                level == Level::RequestResponse || answered.code >= 400 || verb.starts_with("delete");
            let answer = if is_told { self.shown(&answered.body, answered.format) } else { None };
            set("responseStatus", status(answered.code, answer.as_ref()));
            if let Some(sent) = sent.filter(|_| level >= Level::Request) {
                set("requestObject", sent);
            }
            if let Some(answer) = answer.filter(|_| level == Level::RequestResponse) {
                set("responseObject", answer);
            }
        }
        set("requestReceivedTimestamp", micros(self.received));
        let at = if stage == Stage::RequestReceived { self.received } else { self.clock.now() };
        set("stageTimestamp", micros(at));
        let annotations = self.annotations(level, answered);
        if !annotations.is_empty() {
            set("annotations", Value::Object(annotations));
        }
        Value::Object(event)
    }

    /// What was sent, where something is said of it.
    fn sent(&self, level: Level, verb: &str) -> Option<Value> {
        let is_wanted = level >= Level::Request || creates_or_replaces(verb);
        if is_wanted { self.shown(&self.sent, format_named(&self.content_type)) } else { None }
    }

    /// What a body holds, as far as it is to be shown.
    fn shown(&self, body: &Bytes, format: Format) -> Option<Value> {
        let mut value = parsed(body, format)?;
        if self.recorded.is_some_and(|recorded| recorded.omits_managed_fields) {
            without_managed_fields(&mut value);
        }
        Some(value)
    }

    fn annotations(&self, level: Level, answered: Option<&Answered>) -> Map<String, Value> {
        let mut annotations = Map::new();
        if let Some(access) = &self.access {
            let decision = if access.allowed { "allow" } else { "forbid" };
            annotations.insert("authorization.k8s.io/decision".to_owned(), decision.into());
            annotations.insert("authorization.k8s.io/reason".to_owned(), access.reason.as_str().into());
        }
        let made = answered.and_then(|answered| answered.annotations.as_ref());
        // What a patch holds was sent, and is logged where what was sent is.
        let told = made
            .into_iter()
            .flat_map(|made| &made.0)
            .filter(|(key, _)| level >= Level::Request || !key.starts_with(OF_PATCHES));
        for (key, value) in told {
            // An annotation that is there is never overwritten.
            annotations.entry(key.as_str()).or_insert_with(|| value.as_str().into());
        }
        annotations
    }

    /// The verb, and the reference to what it is about.
    fn asked(&self) -> (String, Option<Value>) {
        match &self.attributes {
            None => (self.method.clone(), None),
            Some(AccessAttributes::Path { verb, .. }) => (verb.clone(), None),
            Some(AccessAttributes::Resource {
                verb,
                group,
                version,
                resource,
                subresource,
                namespace,
                name,
                ..
            }) => {
                let fields = [
                    ("resource", resource),
                    ("namespace", namespace),
                    ("name", name),
                    ("apiGroup", group),
                    ("apiVersion", version),
                    ("subresource", subresource),
                ];
                let told = fields.into_iter().filter(|(_, value)| !value.is_empty());
                let about: Map<String, Value> =
                    told.map(|(field, value)| (field.to_owned(), value.as_str().into())).collect();
                (verb.clone(), Some(Value::Object(about)))
            }
        }
    }
}

fn creates_or_replaces(verb: &str) -> bool {
    matches!(verb, "create" | "update")
}

/// Whether the answer to a request goes on until somebody ends it.
fn is_long(attributes: &AccessAttributes) -> bool {
    match attributes {
        AccessAttributes::Path { .. } => false,
        AccessAttributes::Resource { verb, subresource, .. } => {
            matches!(verb.as_str(), "watch" | "proxy")
                || matches!(subresource.as_str(), "attach" | "exec" | "proxy" | "log" | "portforward")
        }
    }
}

/// Takes the managed fields out of an object, or out of the objects of a list or of a Table.
fn without_managed_fields(value: &mut Value) {
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.shift_remove("managedFields");
    }
    if let Some(items) = value.get_mut("items").and_then(Value::as_array_mut) {
        items.iter_mut().for_each(without_managed_fields);
    }
    if let Some(rows) = value.get_mut("rows").and_then(Value::as_array_mut) {
        rows.iter_mut().filter_map(|row| row.get_mut("object")).for_each(without_managed_fields);
    }
}

/// Annotations that tell what webhooks changed.
const OF_PATCHES: &str = "patch.webhook.admission.k8s.io/";
/// Bytes of a user agent that are logged.
const LONGEST_AGENT: usize = 1_024;

fn truncated(mut agent: String) -> String {
    if agent.len() > LONGEST_AGENT {
        agent.truncate(agent.floor_char_boundary(LONGEST_AGENT));
        agent.push_str("...TRUNCATED");
    }
    agent
}

/// The addresses that proxies tell of, and the one that the connection comes from: only that is sure.
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

/// What the path does not say of the object is taken from what was sent: a name that the server is to make is in neither.
fn complete(about: &mut Value, sent: &Value) {
    for field in ["name", "namespace", "uid", "resourceVersion"] {
        let given = sent.pointer(&format!("/metadata/{field}")).and_then(Value::as_str);
        if let Some(given) = given.filter(|given| !given.is_empty() && about.get(field).is_none()) {
            about[field] = given.into();
        }
    }
}

/// How much is logged of a request.
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

/// The Status of the answer: what it is itself, where it is one.
fn status(code: u16, answer: Option<&Value>) -> Value {
    let is_status = |answer: &&Value| answer.get("kind").and_then(Value::as_str) == Some("Status");
    let mut status = Map::from_iter([("metadata".to_owned(), json!({}))]);
    if let Some(answer) = answer.filter(is_status) {
        for field in ["status", "message", "reason", "details"] {
            if let Some(value) = answer.get(field) {
                status.insert(field.to_owned(), value.clone());
            }
        }
    }
    status.insert("code".to_owned(), code.into());
    Value::Object(status)
}

/// What a body holds; none where it is no document.
fn parsed(bytes: &Bytes, format: Format) -> Option<Value> {
    if bytes.is_empty() {
        return None;
    }
    let document = codec::parse(&codec::Body { format, bytes: bytes.clone() }).ok()?;
    (document.value.is_object() || document.value.is_array()).then_some(document.value)
}

fn format_of(headers: &HeaderMap) -> Format {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    format_named(value.unwrap_or_default())
}

fn format_named(media_type: &str) -> Format {
    let media_type = media_type.split(';').next().unwrap_or_default();
    if media_type.ends_with("yaml") {
        Format::Yaml
    } else if media_type.contains("protobuf") {
        Format::Protobuf
    } else {
        Format::Json
    }
}

/// As upstream's `MicroTime`.
fn micros(time: Timestamp) -> Value {
    time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string().into()
}
