//! Reads one line of a log: an audit Event, a list of them, or an AdmissionReview. Objects stay the text that they are.

use std::borrow::Cow;
use std::collections::HashMap;

use admit_policy::UserInfo;
use serde::Deserialize;
use serde_json::value::RawValue;

/// What stands in one line.
#[derive(Debug)]
pub(super) enum Line<'t> {
    Event(Box<Event<'t>>),
    /// The items of an `EventList`, which webhooks of audit logs are sent.
    Events(Vec<&'t RawValue>),
    Review,
}

/// Why a line says nothing about requests.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Unread {
    /// It ends in the middle of a document.
    Cut,
    /// It is no JSON, or has fields of other types than an Event.
    Malformed,
    /// It is JSON of another kind, or of another version than `audit.k8s.io/v1` and `admission.k8s.io/v1`.
    Foreign,
    /// It is longer than [`MAX_LINE`](super::MAX_LINE).
    TooLong,
    /// The compressed file ends early, or is damaged: what comes behind is not known.
    Torn,
    /// The time for the replay was over: this line, and what comes behind, was not looked at.
    Late,
}

impl Unread {
    /// The name of the cause in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cut => "cut",
            Self::Malformed => "malformed",
            Self::Foreign => "foreign",
            Self::TooLong => "tooLong",
            Self::Torn => "torn",
            Self::Late => "late",
        }
    }
}

/// An audit Event, as far as a replay needs it. Missing texts are empty.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Event<'t> {
    #[serde(borrow)]
    kind: Cow<'t, str>,
    #[serde(borrow)]
    api_version: Cow<'t, str>,
    #[serde(borrow)]
    pub(super) level: Cow<'t, str>,
    #[serde(borrow, rename = "auditID")]
    pub(super) audit_id: Cow<'t, str>,
    #[serde(borrow)]
    pub(super) stage: Cow<'t, str>,
    #[serde(borrow, rename = "requestURI")]
    pub(super) request_uri: Cow<'t, str>,
    #[serde(borrow)]
    pub(super) verb: Cow<'t, str>,
    #[serde(borrow)]
    pub(super) user: Option<&'t RawValue>,
    #[serde(borrow)]
    pub(super) impersonated_user: Option<&'t RawValue>,
    #[serde(borrow)]
    pub(super) object_ref: Option<ObjectRef<'t>>,
    pub(super) response_status: Option<ResponseStatus>,
    #[serde(borrow)]
    pub(super) request_object: Option<&'t RawValue>,
    #[serde(borrow)]
    pub(super) response_object: Option<&'t RawValue>,
    #[serde(borrow)]
    pub(super) request_received_timestamp: Cow<'t, str>,
    pub(super) annotations: Option<HashMap<String, String>>,
    #[serde(borrow)]
    items: Option<Vec<&'t RawValue>>,
}

/// What a request is about.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ObjectRef<'t> {
    #[serde(borrow)]
    pub(super) resource: Cow<'t, str>,
    #[serde(borrow)]
    pub(super) namespace: Cow<'t, str>,
    #[serde(borrow)]
    pub(super) name: Cow<'t, str>,
    #[serde(borrow)]
    pub(super) api_group: Cow<'t, str>,
    #[serde(borrow)]
    pub(super) api_version: Cow<'t, str>,
    #[serde(borrow)]
    pub(super) subresource: Cow<'t, str>,
}

/// The server's answer.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ResponseStatus {
    pub(super) code: Option<u16>,
    pub(super) message: Option<String>,
    pub(super) details: Option<Details>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Details {
    pub(super) uid: Option<String>,
}

/// The user of an Event.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct User {
    username: String,
    uid: String,
    groups: Option<Vec<String>>,
    extra: Option<HashMap<String, Option<Vec<String>>>>,
}

/// What of an object's metadata says which of its states it is.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Meta {
    pub(super) name: Option<String>,
    pub(super) uid: Option<String>,
    pub(super) resource_version: Option<String>,
    pub(super) generation: Option<i64>,
    pub(super) deletion_timestamp: Option<String>,
    pub(super) finalizers: Option<Vec<String>>,
    pub(super) deletion_grace_period_seconds: Option<i64>,
}

/// The head of an object.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Head {
    pub(super) kind: Option<String>,
    pub(super) api_version: Option<String>,
    pub(super) metadata: Option<Meta>,
}

impl Head {
    /// Of the text of an object; none where it is none.
    pub(super) fn of(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// Whether it is what servers answer where there is no object to show.
    pub(super) fn is_status(&self) -> bool {
        self.kind.as_deref() == Some("Status") && self.api_version.as_deref() == Some("v1")
    }

    /// The resourceVersion as a number, by which states of one resource are ordered.
    pub(super) fn version(&self) -> Option<u64> {
        self.metadata.as_ref()?.resource_version.as_ref()?.parse().ok()
    }
}

/// Reads one line without its line feed.
pub(super) fn read(line: &[u8]) -> Result<Line<'_>, Unread> {
    let event: Event<'_> = serde_json::from_slice(line).map_err(|error| match error.is_eof() {
        true => Unread::Cut,
        false => Unread::Malformed,
    })?;
    match (&*event.kind, &*event.api_version) {
        ("Event", "audit.k8s.io/v1") => Ok(Line::Event(Box::new(event))),
        ("EventList", "audit.k8s.io/v1") => Ok(Line::Events(event.items.unwrap_or_default())),
        ("AdmissionReview", "admission.k8s.io/v1") => Ok(Line::Review),
        _ => Err(Unread::Foreign),
    }
}

impl Event<'_> {
    /// Whoever acted: the user who was impersonated, where one was.
    pub(super) fn acting(&self) -> Option<UserInfo> {
        let User { username, uid, groups, extra } =
            serde_json::from_str(self.impersonated_user.or(self.user)?.get()).ok()?;
        let extra = extra.unwrap_or_default();
        let mut extra: Vec<_> =
            extra.into_iter().map(|(key, values)| (key, values.unwrap_or_default())).collect();
        extra.sort();
        let groups = groups.unwrap_or_default();
        Some(UserInfo { username, uid, groups, extra: extra.into_iter().collect() })
    }

    /// A parameter of the query.
    pub(super) fn parameter(&self, name: &str) -> Option<String> {
        let (_, query) = self.request_uri.split_once('?')?;
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let value = pairs.into_iter().find(|(key, _)| *key == name)?.1;
        Some(unescaped(value))
    }

    /// An annotation of the audit log.
    pub(super) fn annotation(&self, key: &str) -> Option<&str> {
        self.annotations.as_ref()?.get(key).map(String::as_str)
    }
}

/// Undoes percent-encoding, and `+` for a blank; a broken escape stands for itself.
fn unescaped(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let escape = behind.first_chunk::<2>().filter(|_| *first == b'%');
        let code = escape
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match code {
            Some(code) => {
                out.push(code);
                rest = behind.get(2..).unwrap_or_default();
            }
            None => {
                out.push(if *first == b'+' { b' ' } else { *first });
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}
