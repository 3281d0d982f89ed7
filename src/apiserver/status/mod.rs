//! Builds refusals in the form every Kubernetes client understands: a `meta/v1` Status with code, reason, message, details.
//! The messages are kube-apiserver's; constructors are named after the condition, not after the HTTP code.

mod cause;
mod conflicts;

use std::fmt;

use admit_apimachinery::go;
use admit_apimachinery::status::{Reason, Status, StatusDetails};
use serde_json::{Value, json};

pub(crate) use cause::causes;
pub(crate) use cause::{Cause, Causes, shown};

use crate::object;
use crate::resources::ResourceInfo;

/// A refusal. Boxed, because it travels in every `Result` of the server.
///
/// ```
/// use admit_apiserver::store::{Backend, BackendError, Image, Record, Store};
/// use admit_apiserver::{Refusal, Server};
///
/// /// A disk that cannot be written.
/// struct Broken;
///
/// impl Backend for Broken {
///     fn load(&self) -> Result<Image, BackendError> {
///         Ok(Image::default())
///     }
///
///     fn append(&mut self, _: &[Record]) -> Result<(), BackendError> {
///         Err(BackendError("no room".to_owned()))
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = Store::open(Box::new(Broken))?;
/// let refusal: Refusal = Server::builder().store(store).build().await.unwrap_err();
/// assert!(refusal.code() >= 500 && !refusal.reason().is_empty());
/// assert_eq!(refusal.to_value()["message"], refusal.message());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal(Box<Body>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Body {
    status: Status,
    /// Details that a webhook gave; they replace those of the status.
    given_details: Option<Value>,
    /// The token with which a list can be continued nevertheless; empty if it cannot.
    continue_token: String,
}

impl From<Status> for Refusal {
    fn from(status: Status) -> Self {
        Self(Box::new(Body { status, given_details: None, continue_token: String::new() }))
    }
}

impl Refusal {
    fn bare(reason: Reason, message: impl Into<String>) -> Self {
        Status::new(reason, message).into()
    }

    fn detailed(reason: Reason, message: impl Into<String>, details: StatusDetails) -> Self {
        Status::new(reason, message).with(details).into()
    }

    fn about(info: &ResourceInfo, name: &str) -> StatusDetails {
        StatusDetails {
            name: name.to_owned(),
            group: info.group.clone(),
            kind: info.plural.clone(),
            ..StatusDetails::default()
        }
    }

    #[must_use]
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::bare(Reason::BadRequest, message)
    }

    #[must_use]
    pub(crate) fn unauthorized() -> Self {
        Self::bare(Reason::Unauthorized, "Unauthorized")
    }

    #[must_use]
    pub(crate) fn forbidden(info: &ResourceInfo, name: &str, why: &str) -> Self {
        let resource = info.group_resource();
        let message = match name {
            // For a collection.
            "" => format!("{resource} is forbidden: {why}"),
            name => format!("{resource} {} is forbidden: {why}", go::quote(name)),
        };
        Self::detailed(Reason::Forbidden, message, Self::about(info, name))
    }

    /// Builds a 403 for a resource whose existence the user may not know. The kind in the details is the resource's name.
    #[must_use]
    pub(crate) fn resource_forbidden(group: &str, plural: &str, name: &str, why: &str) -> Self {
        let resource = if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") };
        let subject = if name.is_empty() { resource } else { format!("{resource} \"{name}\"") };
        let details = StatusDetails {
            name: name.to_owned(),
            group: group.to_owned(),
            kind: plural.to_owned(),
            ..StatusDetails::default()
        };
        let message = if plural.is_empty() && group.is_empty() {
            format!("forbidden: {why}")
        } else {
            format!("{subject} is forbidden: {why}")
        };
        Self::detailed(Reason::Forbidden, message, details)
    }

    /// Builds the 403 for creations in a terminating namespace, with the cause that clients look for.
    #[must_use]
    pub(crate) fn namespace_terminating(info: &ResourceInfo, name: &str, why: &str, namespace: &str) -> Self {
        let mut refusal = Self::forbidden(info, name, why);
        if let Some(details) = &mut refusal.0.status.details {
            details.causes.push(Cause {
                reason: "NamespaceTerminating".into(),
                message: format!("namespace {namespace} is being terminated"),
                field: "metadata.namespace".to_owned(),
            });
        }
        refusal
    }

    #[must_use]
    pub(crate) fn not_found(info: &ResourceInfo, name: &str) -> Self {
        let message = format!("{} {} not found", info.group_resource(), go::quote(name));
        Self::detailed(Reason::NotFound, message, Self::about(info, name))
    }

    /// Builds a 404 for an object that the server looks up, not the client. Upstream's listers name the kind, in lower case, as
    /// the resource.
    #[must_use]
    pub(crate) fn not_listed(group: &str, kind: &str, name: &str) -> Self {
        let full = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
        let details = StatusDetails {
            name: name.to_owned(),
            group: group.to_owned(),
            kind: kind.to_owned(),
            ..StatusDetails::default()
        };
        Self::detailed(Reason::NotFound, format!("{full} {} not found", go::quote(name)), details)
    }

    /// Builds a 404 for an unknown resource of a served group and version.
    #[must_use]
    pub(crate) fn unknown_path() -> Self {
        Self::generic(Reason::NotFound, "the server could not find the requested resource")
    }

    #[must_use]
    pub(crate) fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::generic(Reason::MethodNotAllowed, message)
    }

    #[must_use]
    pub(crate) fn verb_not_supported(info: &ResourceInfo, verb: &str) -> Self {
        let message = format!("{verb} is not supported on resources of kind \"{}\"", info.group_resource());
        Self::detailed(Reason::MethodNotAllowed, message, Self::about(info, ""))
    }

    #[must_use]
    pub(crate) fn not_acceptable(accepted: &[&str]) -> Self {
        let message = format!("only the following media types are accepted: {}", accepted.join(", "));
        Self::bare(Reason::NotAcceptable, message)
    }

    /// Builds the 406 of the router of built-in kinds, before it looks for a handler.
    #[must_use]
    pub(crate) fn no_representation(available: &[&str]) -> Self {
        let message = format!("406: Not Acceptable\n\nAvailable representations: {}", available.join(", "));
        Self::generic(Reason::NotAcceptable, message)
    }

    #[must_use]
    pub(crate) fn not_acceptable_form(message: String) -> Self {
        Self::bare(Reason::NotAcceptable, message)
    }

    #[must_use]
    pub(crate) fn already_exists(info: &ResourceInfo, name: &str) -> Self {
        let message = format!("{} {} already exists", info.group_resource(), go::quote(name));
        Self::detailed(Reason::AlreadyExists, message, Self::about(info, name))
    }

    #[must_use]
    pub(crate) fn conflict(info: &ResourceInfo, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} \"{name}\": {why}", info.group_resource());
        Self::detailed(Reason::Conflict, message, Self::about(info, name))
    }

    /// Builds a conflict for fields that other managers own, each a cause.
    #[must_use]
    pub(crate) fn apply_conflict(message: String, causes: Vec<Cause>) -> Self {
        Self::detailed(Reason::Conflict, message, StatusDetails { causes, ..StatusDetails::default() })
    }

    /// Builds a conflict for a failed precondition of a DELETE: only this message names the kind, not the resource.
    #[must_use]
    pub(crate) fn precondition_failed(info: &ResourceInfo, name: &str, why: &str) -> Self {
        let mut refusal = Self::conflict(info, name, why);
        refusal.0.status.message =
            format!("Operation cannot be fulfilled on {} \"{name}\": {why}", qualified_kind(info));
        if let Some(details) = &mut refusal.0.status.details {
            details.kind.clone_from(&info.kind);
        }
        refusal
    }

    #[must_use]
    pub(crate) fn modified(info: &ResourceInfo, name: &str) -> Self {
        let why =
            "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(info, name, why)
    }

    /// Builds a 410 for a list or watch from a revision that is no longer kept.
    #[must_use]
    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::bare(Reason::Expired, message)
    }

    /// Adds to the refusal of a list a token that continues it in another state.
    #[must_use]
    pub(crate) fn with_continue(mut self, token: String) -> Self {
        self.0.continue_token = token;
        self
    }

    #[must_use]
    pub(crate) fn too_large(limit: usize) -> Self {
        let message = format!("Request entity too large: limit is {limit}");
        Self::bare(Reason::RequestEntityTooLarge, message)
    }

    #[must_use]
    pub(crate) fn too_large_because(message: impl Into<String>) -> Self {
        Self::bare(Reason::RequestEntityTooLarge, message)
    }

    /// Builds the refusal of a revision that this server has not reached yet; clients wait and retry.
    #[must_use]
    pub(crate) fn too_large_version(wanted: u64, newest: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {wanted}, current: {newest}");
        let cause = Cause {
            reason: "ResourceVersionTooLarge".into(),
            field: String::new(),
            message: "Too large resource version".to_owned(),
        };
        let details =
            StatusDetails { causes: vec![cause], retry_after_seconds: 1, ..StatusDetails::default() };
        Self::detailed(Reason::Timeout, message, details)
    }

    /// Builds a 500 for an error of this server.
    #[must_use]
    pub(crate) fn panicked() -> Self {
        let message = "This request caused apiserver to panic. Look in the logs for details.";
        Self::bare(Reason::InternalError, message)
    }

    #[must_use]
    pub(crate) fn timed_out() -> Self {
        let message = "Timeout: request did not complete within the allotted timeout";
        Self::generic(Reason::Timeout, message)
    }

    #[must_use]
    pub(crate) fn unsupported_media_type(accepted: &[&str]) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            accepted.join(", ")
        );
        Self::bare(Reason::UnsupportedMediaType, message)
    }

    #[must_use]
    pub(crate) fn unmatched_media_type() -> Self {
        Self::generic(Reason::UnsupportedMediaType, "415: Unsupported Media Type")
    }

    #[must_use]
    pub(crate) fn invalid(info: &ResourceInfo, name: &str, causes: impl Into<Causes>) -> Self {
        Self::invalid_kind(info.internal_group(), &info.kind, name, causes)
    }

    /// Builds a 422, `Widget.example.dev "name" is invalid: …`; an empty kind is printed as nothing, as by Kubernetes.
    #[must_use]
    pub(crate) fn invalid_kind(group: &str, kind: &str, name: &str, causes: impl Into<Causes>) -> Self {
        Status::invalid(group, kind, name, causes.into().into_vec()).into()
    }

    /// Builds the refusal of a patch that cannot be applied; Kubernetes gives no more details.
    #[must_use]
    pub(crate) fn unprocessable() -> Self {
        Self::generic(Reason::Invalid, "the server rejected our request due to an error in our request")
    }

    #[must_use]
    pub(crate) fn too_many_requests(message: &str, retry_after_seconds: u32) -> Self {
        let details = StatusDetails { retry_after_seconds, ..StatusDetails::default() };
        Self::detailed(Reason::TooManyRequests, message.to_owned(), details)
    }

    /// Adds a cause to the refusal.
    #[must_use]
    pub(crate) fn caused_by(mut self, cause: Cause) -> Self {
        self.0.status.details.get_or_insert_default().causes.push(cause);
        self
    }

    #[must_use]
    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self::bare(Reason::ServiceUnavailable, message)
    }

    #[must_use]
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        let message = message.into();
        let cause = Cause { reason: "".into(), field: String::new(), message: message.clone() };
        let details = StatusDetails { causes: vec![cause], ..StatusDetails::default() };
        Self::detailed(Reason::InternalError, format!("Internal error occurred: {message}"), details)
    }

    /// Builds a code 500 with the bare text, for errors for which Kubernetes has no reason.
    #[must_use]
    pub(crate) fn unclassified(message: impl Into<String>) -> Self {
        Status { reason: "".into(), ..Status::new(Reason::InternalError, message) }.into()
    }

    #[must_use]
    pub(crate) fn not_implemented(message: impl Into<String>) -> Self {
        Self::bare(Reason::NotImplemented, message)
    }

    /// Builds the refusal of an admission webhook from the Status that it returned: its code is at least 400, and its
    /// message is never empty.
    #[must_use]
    pub(crate) fn denied_by_webhook(webhook: &str, status: Option<&Value>) -> Self {
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
        let given_details =
            status.and_then(|status| status.get("details")).filter(|it| it.is_object()).cloned();
        let details = given_details.as_ref().map(|_| StatusDetails::default());
        Self(Box::new(Body {
            status: Status { code, reason: reason.into(), message, details },
            given_details,
            continue_token: String::new(),
        }))
    }

    /// Builds a refusal without an object, with empty details.
    #[must_use]
    pub(crate) fn generic(reason: Reason, message: impl Into<String>) -> Self {
        Self::detailed(reason, message, StatusDetails::default())
    }

    /// Prefixes the message with `prefix`.
    #[must_use]
    pub(crate) fn prefixed(mut self, prefix: &str) -> Self {
        self.0.status.message.insert_str(0, prefix);
        self
    }

    /// Appends `suffix` to the message.
    #[must_use]
    pub(crate) fn suffixed(mut self, suffix: &str) -> Self {
        self.0.status.message.push_str(suffix);
        self
    }

    #[must_use]
    pub fn code(&self) -> u16 {
        self.0.status.code
    }

    #[must_use]
    pub fn reason(&self) -> &str {
        &self.0.status.reason
    }

    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.status.message
    }

    /// Returns the Status document.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut document = self.0.status.to_value();
        if let Some(given) = &self.0.given_details {
            object::set_field(&mut document, "details", Some(given.clone()));
        }
        if !self.0.continue_token.is_empty() {
            object::set_meta(&mut document, "continue", Some(self.0.continue_token.as_str().into()));
        }
        document
    }

    /// Returns the `Status`, without details that a webhook gave.
    #[must_use]
    pub(crate) fn into_status(self) -> Status {
        self.0.status
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.status.message)
    }
}

impl std::error::Error for Refusal {}

fn qualified_kind(info: &ResourceInfo) -> String {
    if info.group.is_empty() { info.kind.clone() } else { format!("{}.{}", info.kind, info.group) }
}

/// Builds the response to a DELETE that removed the object at once.
#[must_use]
pub(crate) fn deleted(info: &ResourceInfo, name: &str, uid: &str) -> Value {
    let details = StatusDetails { uid: uid.to_owned(), ..Refusal::about(info, name) };
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details.to_value()})
}
