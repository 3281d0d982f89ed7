//! Refusals, in the form every Kubernetes client understands: a `meta/v1` Status with code, reason, message, details.
//! The wording is kube-apiserver's; constructors are named after the condition, not after the HTTP code.

mod cause;

use std::borrow::Cow;
use std::fmt;

use admit_apimachinery::field_error::distinct;
use admit_apimachinery::go;
use serde_json::{Map, Value, json};

pub use cause::{Cause, Causes, shown};

use crate::resources::ResourceInfo;

/// A refusal. Boxed, because it travels in every `Result` of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal(Box<Body>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Body {
    code: u16,
    reason: Cow<'static, str>,
    message: String,
    details: Option<Details>,
    /// Details in the form that somebody else gave them; they stand in place of `details`.
    given_details: Option<Value>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Details {
    name: String,
    group: String,
    kind: String,
    uid: String,
    causes: Vec<Cause>,
    retry_after_seconds: u32,
}

impl Refusal {
    fn of(code: u16, reason: Cow<'static, str>, message: String, details: Option<Details>) -> Self {
        Self(Box::new(Body { code, reason, message, details, given_details: None }))
    }

    fn bare(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self::of(code, reason.into(), message.into(), None)
    }

    fn detailed(code: u16, reason: &'static str, message: String, details: Details) -> Self {
        Self::of(code, reason.into(), message, Some(details))
    }

    fn about(info: &ResourceInfo, name: &str) -> Details {
        Details {
            name: name.to_owned(),
            group: info.group.clone(),
            kind: info.plural.clone(),
            ..Details::default()
        }
    }

    #[must_use]
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::bare(400, "BadRequest", message)
    }

    #[must_use]
    pub fn unauthorized() -> Self {
        Self::bare(401, "Unauthorized", "Unauthorized")
    }

    #[must_use]
    pub fn forbidden(info: &ResourceInfo, name: &str, why: &str) -> Self {
        let message = format!("{} {} is forbidden: {why}", info.group_resource(), go::quote(name));
        Self::detailed(403, "Forbidden", message, Self::about(info, name))
    }

    /// 403 about a resource that the user may not even know to exist. The kind in the details is the resource's name.
    #[must_use]
    pub fn resource_forbidden(group: &str, plural: &str, name: &str, why: &str) -> Self {
        let resource = if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") };
        let subject = if name.is_empty() { resource } else { format!("{resource} \"{name}\"") };
        let details = Details {
            name: name.to_owned(),
            group: group.to_owned(),
            kind: plural.to_owned(),
            ..Details::default()
        };
        Self::detailed(403, "Forbidden", format!("{subject} is forbidden: {why}"), details)
    }

    /// 403 with the cause that clients look for when a namespace is going away.
    #[must_use]
    pub fn namespace_terminating(info: &ResourceInfo, name: &str, why: &str, namespace: &str) -> Self {
        let mut refusal = Self::forbidden(info, name, why);
        if let Some(details) = &mut refusal.0.details {
            details.causes.push(Cause {
                reason: "NamespaceTerminating".into(),
                message: format!("namespace {namespace} is being terminated"),
                field: "metadata.namespace".to_owned(),
            });
        }
        refusal
    }

    #[must_use]
    pub fn not_found(info: &ResourceInfo, name: &str) -> Self {
        let message = format!("{} {} not found", info.group_resource(), go::quote(name));
        Self::detailed(404, "NotFound", message, Self::about(info, name))
    }

    /// No such resource below a served group and version.
    #[must_use]
    pub fn unknown_path() -> Self {
        Self::generic(404, "NotFound", "the server could not find the requested resource")
    }

    #[must_use]
    pub fn method_not_allowed() -> Self {
        Self::generic(
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        )
    }

    #[must_use]
    pub fn verb_not_supported(info: &ResourceInfo, verb: &str) -> Self {
        let message = format!("{verb} is not supported on resources of kind \"{}\"", info.group_resource());
        Self::detailed(405, "MethodNotAllowed", message, Self::about(info, ""))
    }

    #[must_use]
    pub fn not_acceptable(accepted: &[&str]) -> Self {
        let message = format!("only the following media types are accepted: {}", accepted.join(", "));
        Self::bare(406, "NotAcceptable", message)
    }

    /// What the router of built-in kinds says before it looks for a handler.
    #[must_use]
    pub fn no_representation(available: &[&str]) -> Self {
        let message = format!("406: Not Acceptable\n\nAvailable representations: {}", available.join(", "));
        Self::generic(406, "NotAcceptable", &message)
    }

    #[must_use]
    pub fn not_acceptable_form(message: String) -> Self {
        Self::bare(406, "NotAcceptable", message)
    }

    #[must_use]
    pub fn already_exists(info: &ResourceInfo, name: &str) -> Self {
        let message = format!("{} {} already exists", info.group_resource(), go::quote(name));
        Self::detailed(409, "AlreadyExists", message, Self::about(info, name))
    }

    #[must_use]
    pub fn conflict(info: &ResourceInfo, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} \"{name}\": {why}", info.group_resource());
        Self::detailed(409, "Conflict", message, Self::about(info, name))
    }

    /// A precondition of a DELETE that does not hold: this one message names the kind, not the resource.
    /// Fields that other managers own, each a cause.
    #[must_use]
    pub fn apply_conflict(message: String, causes: Vec<Cause>) -> Self {
        Self::detailed(409, "Conflict", message, Details { causes, ..Details::default() })
    }

    #[must_use]
    pub fn precondition_failed(info: &ResourceInfo, name: &str, why: &str) -> Self {
        let mut refusal = Self::conflict(info, name, why);
        refusal.0.message =
            format!("Operation cannot be fulfilled on {} \"{name}\": {why}", qualified_kind(info));
        if let Some(details) = &mut refusal.0.details {
            details.kind.clone_from(&info.kind);
        }
        refusal
    }

    #[must_use]
    pub fn modified(info: &ResourceInfo, name: &str) -> Self {
        let why =
            "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(info, name, why)
    }

    /// A list or watch from a revision that is no longer kept.
    #[must_use]
    pub fn expired(message: impl Into<String>) -> Self {
        Self::bare(410, "Expired", message)
    }

    #[must_use]
    pub fn too_large(limit: usize) -> Self {
        let message = format!("Request entity too large: limit is {limit}");
        Self::bare(413, "RequestEntityTooLarge", message)
    }

    #[must_use]
    pub fn too_large_because(message: impl Into<String>) -> Self {
        Self::bare(413, "RequestEntityTooLarge", message)
    }

    /// A revision that this server has not reached yet; clients wait and ask again.
    #[must_use]
    pub fn too_large_version(wanted: u64, newest: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {wanted}, current: {newest}");
        let cause = Cause {
            reason: "ResourceVersionTooLarge".into(),
            field: String::new(),
            message: "Too large resource version".to_owned(),
        };
        let details = Details { causes: vec![cause], retry_after_seconds: 1, ..Details::default() };
        Self::detailed(504, "Timeout", message, details)
    }

    /// A fault of this server's own.
    #[must_use]
    pub fn panicked() -> Self {
        let message = "This request caused apiserver to panic. Look in the logs for details.";
        Self::bare(500, "InternalError", message)
    }

    #[must_use]
    pub fn timed_out() -> Self {
        let message = "Timeout: request did not complete within the allotted timeout";
        Self::generic(504, "Timeout", message)
    }

    #[must_use]
    pub fn unsupported_media_type(accepted: &[&str]) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            accepted.join(", ")
        );
        Self::bare(415, "UnsupportedMediaType", message)
    }

    #[must_use]
    pub fn unsupported_because(why: &str) -> Self {
        Self::bare(415, "UnsupportedMediaType", why)
    }

    #[must_use]
    pub fn unmatched_media_type() -> Self {
        Self::generic(415, "UnsupportedMediaType", "415: Unsupported Media Type")
    }

    #[must_use]
    pub fn invalid(info: &ResourceInfo, name: &str, causes: impl Into<Causes>) -> Self {
        // Events of either group are events of the core group to whoever validates them.
        let group = if info.builtin && info.kind == "Event" { "" } else { info.group.as_str() };
        Self::invalid_kind(group, &info.kind, name, causes)
    }

    /// `Widget.example.dev "name" is invalid: …`; an empty kind is printed as Kubernetes prints it, as nothing.
    #[must_use]
    pub fn invalid_kind(group: &str, kind: &str, name: &str, causes: impl Into<Causes>) -> Self {
        let qualified = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
        let quoted = go::quote(name);
        let causes = causes.into().into_vec();
        let message = match distinct(causes.iter().map(ToString::to_string)).as_slice() {
            [] => format!("{qualified} {quoted} is invalid"),
            [one] => format!("{qualified} {quoted} is invalid: {one}"),
            many => format!("{qualified} {quoted} is invalid: [{}]", many.join(", ")),
        };
        let details = Details {
            name: name.to_owned(),
            group: group.to_owned(),
            kind: kind.to_owned(),
            causes,
            ..Details::default()
        };
        Self::detailed(422, "Invalid", message, details)
    }

    /// A patch that cannot be applied; Kubernetes says no more than this.
    #[must_use]
    pub fn unprocessable() -> Self {
        Self::generic(422, "Invalid", "the server rejected our request due to an error in our request")
    }

    #[must_use]
    pub fn too_many_requests(message: &str, retry_after_seconds: u32) -> Self {
        let details = Details { retry_after_seconds, ..Details::default() };
        Self::detailed(429, "TooManyRequests", message.to_owned(), details)
    }

    /// The same refusal with a cause.
    #[must_use]
    pub fn caused_by(mut self, cause: Cause) -> Self {
        self.0.details.get_or_insert_default().causes.push(cause);
        self
    }

    #[must_use]
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::bare(503, "ServiceUnavailable", message)
    }

    #[must_use]
    pub fn internal(message: impl Into<String>) -> Self {
        let message = message.into();
        let cause = Cause { reason: "".into(), field: String::new(), message: message.clone() };
        let details = Details { causes: vec![cause], ..Details::default() };
        Self::detailed(500, "InternalError", format!("Internal error occurred: {message}"), details)
    }

    /// An error for which Kubernetes has no reason: code 500 with the bare text.
    #[must_use]
    pub fn unclassified(message: impl Into<String>) -> Self {
        Self::bare(500, "", message)
    }

    #[must_use]
    pub fn not_implemented(message: impl Into<String>) -> Self {
        Self::bare(501, "NotImplemented", message)
    }

    /// What an admission plug-in answers when it denies: its own code, reason and message.
    #[must_use]
    pub fn denied(code: u16, reason: &'static str, message: String) -> Self {
        Self::detailed(code, reason, message, Details::default())
    }

    /// The refusal of an admission webhook, with the Status that it gave: never below 400, and never without words.
    #[must_use]
    pub fn denied_by_webhook(webhook: &str, status: Option<&Value>) -> Self {
        let text = |field: &str| {
            let value = status.and_then(|status| status.get(field)).and_then(Value::as_str);
            value.unwrap_or_default().to_owned()
        };
        let code = status.and_then(|status| status.get("code")).and_then(Value::as_u64).unwrap_or(0);
        let code = u16::try_from(code).unwrap_or(500).max(400);
        let (message, reason) = (text("message"), text("reason"));
        let denied_by = format!("admission webhook {} denied the request", go::quote(webhook));
        let message = match (message.as_str(), reason.as_str()) {
            ("", "") => format!("{denied_by} without explanation"),
            ("", reason) => format!("{denied_by}: {reason}"),
            (message, _) => format!("{denied_by}: {message}"),
        };
        let mut refusal = Self::of(code, reason.into(), message, None);
        refusal.0.given_details =
            status.and_then(|status| status.get("details")).filter(|it| it.is_object()).cloned();
        refusal
    }

    /// The refusal of an admission policy.
    #[must_use]
    pub fn from_status(status: admit_policy::decision::Status) -> Self {
        let admit_policy::decision::StatusDetails { name, group, kind, causes } = status.details;
        let details = Details { name, group, kind, causes, ..Details::default() };
        Self::of(status.code, status.reason.into(), status.message, Some(details))
    }

    fn generic(code: u16, reason: &'static str, message: &str) -> Self {
        Self::detailed(code, reason, message.to_owned(), Details::default())
    }

    /// The same refusal, its message beginning with `prefix`.
    #[must_use]
    pub fn prefixed(mut self, prefix: &str) -> Self {
        self.0.message.insert_str(0, prefix);
        self
    }

    #[must_use]
    pub fn code(&self) -> u16 {
        self.0.code
    }

    #[must_use]
    pub fn reason(&self) -> &str {
        &self.0.reason
    }

    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The Status document.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let Body { code, reason, message, details, given_details } = &*self.0;
        let mut status = Map::new();
        status.insert("kind".into(), "Status".into());
        status.insert("apiVersion".into(), "v1".into());
        status.insert("metadata".into(), json!({}));
        status.insert("status".into(), "Failure".into());
        status.insert("message".into(), message.as_str().into());
        if !reason.is_empty() {
            status.insert("reason".into(), reason.as_ref().into());
        }
        if let Some(given) = given_details {
            status.insert("details".into(), given.clone());
        } else if let Some(details) = details {
            status.insert("details".into(), details.to_value());
        }
        status.insert("code".into(), (*code).into());
        Value::Object(status)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for Refusal {}

impl Details {
    fn to_value(&self) -> Value {
        let Self { name, group, kind, uid, causes, retry_after_seconds } = self;
        let mut out = Map::new();
        for (key, text) in [("name", name), ("group", group), ("kind", kind), ("uid", uid)] {
            if !text.is_empty() {
                out.insert(key.into(), text.as_str().into());
            }
        }
        if !causes.is_empty() {
            out.insert("causes".into(), causes.iter().map(Cause::to_value).collect());
        }
        if *retry_after_seconds > 0 {
            out.insert("retryAfterSeconds".into(), (*retry_after_seconds).into());
        }
        Value::Object(out)
    }
}

fn qualified_kind(info: &ResourceInfo) -> String {
    if info.group.is_empty() { info.kind.clone() } else { format!("{}.{}", info.kind, info.group) }
}

/// The answer to a DELETE that removed the object at once.
#[must_use]
pub fn deleted(info: &ResourceInfo, name: &str, uid: &str) -> Value {
    let details = Details { uid: uid.to_owned(), ..Refusal::about(info, name) };
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details.to_value()})
}
