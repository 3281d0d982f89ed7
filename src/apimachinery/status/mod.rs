//! Defines `metav1.Status`, a failure as servers report it: its reason, its message, and errors about single fields.

mod cause;

use std::borrow::Cow;

use serde_json::{Map, Value, json};

pub use cause::{StatusCause, shown};

use crate::field_error::together;
use crate::go;

/// Defines the reasons, each with its HTTP status code and documentation.
macro_rules! reasons {
    ($($name:ident $code:literal $meaning:literal,)*) => {
        /// Why a request fails, in the one word that clients compare.
        #[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
        pub enum Reason {
            $(#[doc = $meaning] $name,)*
        }

        impl Reason {
            /// Returns the reason as in a status.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }

            /// Returns the HTTP status code for the reason.
            #[must_use]
            pub const fn code(self) -> u16 {
                match self {
                    $(Self::$name => $code,)*
                }
            }
        }
    };
}

reasons! {
    BadRequest 400 "The request makes no sense.",
    Unauthorized 401 "Nobody knows who asks.",
    Forbidden 403 "Whoever asks may not do so, or nobody may.",
    NotFound 404 "There is no such object, or no such address.",
    MethodNotAllowed 405 "The resource knows no such verb.",
    NotAcceptable 406 "The answer has none of the forms that are asked for.",
    AlreadyExists 409 "An object of that name is there.",
    Conflict 409 "The object is another one than the client thinks.",
    Expired 410 "What is asked for was there, and is no longer.",
    RequestEntityTooLarge 413 "More bytes than are read.",
    UnsupportedMediaType 415 "The body is in a form that nobody reads.",
    Invalid 422 "The object breaks a rule.",
    TooManyRequests 429 "Later, perhaps.",
    InternalError 500 "A fault of the server's own.",
    NotImplemented 501 "The server does not do such things.",
    ServiceUnavailable 503 "Not now.",
    Timeout 504 "It took too long.",
}

/// A failure as clients receive it.
///
/// ```
/// use admit_apimachinery::status::{Status, StatusCause};
///
/// let status = Status::invalid("example.dev", "Widget", "a", vec![StatusCause::required("spec.size", "")]);
/// assert_eq!(status.message, r#"Widget.example.dev "a" is invalid: spec.size: Required value"#);
/// assert_eq!(status.to_value()["code"], 422);
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Status {
    /// The HTTP status code.
    pub code: u16,
    /// Usually that of a [`Reason`]; empty if Kubernetes has none.
    pub reason: Cow<'static, str>,
    /// The message for people.
    pub message: String,
    /// The details, if there are any.
    pub details: Option<StatusDetails>,
}

/// What a [`Status`] is about; empty parts are not written.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct StatusDetails {
    /// The object's name.
    pub name: String,
    /// The API group of the resource.
    pub group: String,
    /// The plural resource name in denials of admission, the kind in those of validation.
    pub kind: String,
    /// The object's uid.
    pub uid: String,
    /// Errors about single fields.
    pub causes: Vec<StatusCause>,
    /// When the client may retry; 0 if that is unknown.
    pub retry_after_seconds: u32,
}

impl Status {
    /// Creates a failure without details, with the status code of the reason.
    #[must_use]
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { code: reason.code(), reason: reason.as_str().into(), message: message.into(), details: None }
    }

    /// Sets the details.
    #[must_use]
    pub fn with(self, details: StatusDetails) -> Self {
        Self { details: Some(details), ..self }
    }

    /// Creates a failure 422: `Widget.example.dev "name" is invalid: …`. An empty kind is printed as nothing, as in Kubernetes.
    #[must_use]
    pub fn invalid(group: &str, kind: &str, name: &str, causes: Vec<StatusCause>) -> Self {
        let mut message = invalid_subject(group, kind, name);
        if !causes.is_empty() {
            message.push_str(": ");
            message.push_str(&together(causes.iter().map(ToString::to_string)));
        }
        let (name, group, kind) = (name.to_owned(), group.to_owned(), kind.to_owned());
        Self::new(Reason::Invalid, message).with(StatusDetails {
            name,
            group,
            kind,
            causes,
            ..StatusDetails::default()
        })
    }

    /// Returns the errors about single fields.
    #[must_use]
    pub fn causes(&self) -> &[StatusCause] {
        self.details.as_ref().map_or(&[], |details| &details.causes)
    }

    /// Returns the document that a client receives.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let types = [("kind".to_owned(), "Status".into()), ("apiVersion".to_owned(), "v1".into())];
        Value::Object(types.into_iter().chain(self.fields()).collect())
    }

    /// Returns the members for a status within another document, without its type.
    #[must_use]
    pub fn fields(&self) -> Map<String, Value> {
        let mut fields = Map::new();
        fields.insert("metadata".to_owned(), json!({}));
        fields.insert("status".to_owned(), "Failure".into());
        fields.insert("message".to_owned(), self.message.as_str().into());
        if !self.reason.is_empty() {
            fields.insert("reason".to_owned(), self.reason.as_ref().into());
        }
        if let Some(details) = &self.details {
            fields.insert("details".to_owned(), details.to_value());
        }
        fields.insert("code".to_owned(), self.code.into());
        fields
    }
}

/// Returns the beginning of the message of an `Invalid` status: `Widget.example.dev "name" is invalid`.
#[must_use]
pub fn invalid_subject(group: &str, kind: &str, name: &str) -> String {
    let dot = if group.is_empty() { "" } else { "." };
    format!("{kind}{dot}{group} {} is invalid", go::quote(name))
}

impl StatusDetails {
    /// Returns the details as in a status.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let Self { name, group, kind, uid, causes, retry_after_seconds } = self;
        let mut fields = written([("name", name), ("group", group), ("kind", kind), ("uid", uid)]);
        if !causes.is_empty() {
            fields.insert("causes".to_owned(), causes.iter().map(StatusCause::to_value).collect());
        }
        if *retry_after_seconds > 0 {
            fields.insert("retryAfterSeconds".to_owned(), (*retry_after_seconds).into());
        }
        Value::Object(fields)
    }
}

/// Returns the members that are not empty.
fn written<const N: usize>(members: [(&str, &str); N]) -> Map<String, Value> {
    let members = members.into_iter().filter(|(_, text)| !text.is_empty());
    members.map(|(key, text)| (key.to_owned(), text.into())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_leave_out_what_is_empty() {
        let cause = StatusCause { reason: "".into(), message: "no".to_owned(), field: String::new() };
        let details =
            StatusDetails { kind: "pods".to_owned(), causes: vec![cause], ..StatusDetails::default() };
        let told = |status: Status| status.to_value().to_string();
        assert_eq!(
            told(Status::new(Reason::Forbidden, "m").with(details)),
            r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"m","reason":"Forbidden","details":{"kind":"pods","causes":[{"message":"no"}]},"code":403}"#
        );
        let nameless = Status { reason: "".into(), ..Status::new(Reason::Timeout, "m") };
        assert_eq!(
            told(nameless.with(StatusDetails::default())),
            r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"m","details":{},"code":504}"#
        );
    }
}
