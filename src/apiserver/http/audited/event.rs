//! Builds the audit event of a request at one stage, in the shape of `audit.k8s.io/v1`.

use admit_policy::AccessAttributes;
use bytes::Bytes;
use http::{HeaderMap, header};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{Annotations, Notes};
use crate::audit::{Level, Stage};
use crate::codec::{self, Format};
use crate::identity::Identity;

/// The prefix of annotations with webhook patches.
const OF_PATCHES: &str = "patch.webhook.admission.k8s.io/";

/// The response to a request, as far as events need it.
pub(super) struct Answered {
    pub(super) code: u16,
    pub(super) body: Bytes,
    pub(super) format: Format,
    pub(super) annotations: Option<Annotations>,
}

impl Notes {
    pub(super) fn event(
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

    /// Returns the request body, if the level includes it.
    fn sent(&self, level: Level, verb: &str) -> Option<Value> {
        let is_wanted = level >= Level::Request || creates_or_replaces(verb);
        if is_wanted { self.shown(&self.sent, format_named(&self.content_type)) } else { None }
    }

    /// Returns a body as it is to be shown.
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
        // A webhook's patch is logged only at levels that include the request body.
        let told = made
            .into_iter()
            .flat_map(|made| &made.0)
            .filter(|(key, _)| level >= Level::Request || !key.starts_with(OF_PATCHES));
        for (key, value) in told {
            // The first value of an annotation stays.
            annotations.entry(key.as_str()).or_insert_with(|| value.as_str().into());
        }
        annotations
    }

    /// Returns the verb, and the reference to the object.
    pub(super) fn asked(&self) -> (String, Option<Value>) {
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

/// Removes the managed fields from an object, or from the objects of a list or a Table.
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

/// Completes the object reference from the request body; a generated name is in neither.
fn complete(about: &mut Value, sent: &Value) {
    for field in ["name", "namespace", "uid", "resourceVersion"] {
        let given = sent.pointer(&format!("/metadata/{field}")).and_then(Value::as_str);
        if let Some(given) = given.filter(|given| !given.is_empty() && about.get(field).is_none()) {
            about[field] = given.into();
        }
    }
}

/// Returns the response as a Status: the body itself if it is one, else one with this code.
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

/// Parses a body; None if it is not a document.
fn parsed(bytes: &Bytes, format: Format) -> Option<Value> {
    if bytes.is_empty() {
        return None;
    }
    let document = codec::parse(&codec::Body { format, bytes: bytes.clone() }).ok()?;
    (document.value.is_object() || document.value.is_array()).then_some(document.value)
}

pub(super) fn format_of(headers: &HeaderMap) -> Format {
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

/// Formats a time as upstream's `MicroTime`.
fn micros(time: Timestamp) -> Value {
    time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string().into()
}
