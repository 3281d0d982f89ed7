//! Parses one line of a log: an audit Event, an EventList, or an AdmissionReview. Objects are kept as unparsed JSON text.

use std::borrow::Cow;
use std::collections::HashMap;

use admit_policy::UserInfo;
use serde::Deserialize;
use serde_json::value::RawValue;

/// The content of one line.
#[derive(Debug)]
pub(super) enum Line<'t> {
    Event(Box<Event<'t>>),
    /// The items of an `EventList`, as audit webhooks receive it.
    Events(Vec<&'t RawValue>),
    Review,
}

/// Why a line cannot be used.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Unread {
    /// It ends in the middle of a document.
    Cut,
    /// It is not JSON, or a field has another type than in an Event.
    Malformed,
    /// It is JSON of another kind, or of another version than `audit.k8s.io/v1` and `admission.k8s.io/v1`.
    Foreign,
    /// It is longer than [`MAX_LINE`](super::MAX_LINE).
    TooLong,
    /// The compressed file ends early or is damaged; what follows is unknown.
    Torn,
    /// The time limit of the replay was reached: this line and what follows were not read.
    Late,
}

impl Unread {
    /// Returns the name of the cause in reports.
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

/// The fields of an audit Event that a replay needs. Missing strings are empty.
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

/// The target of a request.
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

/// The server's response status.
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

/// The metadata that distinguishes states of an object.
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

/// The identifying fields of an object.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Head {
    pub(super) kind: Option<String>,
    pub(super) api_version: Option<String>,
    pub(super) metadata: Option<Meta>,
}

impl Head {
    /// Parses them from an object's JSON text; `None` if it is not an object.
    pub(super) fn of(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// Reports whether it is a Status, which servers return in place of an object.
    pub(super) fn is_status(&self) -> bool {
        self.kind.as_deref() == Some("Status") && self.api_version.as_deref() == Some("v1")
    }

    /// Returns the resourceVersion as a number, which orders the states of one resource.
    pub(super) fn version(&self) -> Option<u64> {
        self.metadata.as_ref()?.resource_version.as_ref()?.parse().ok()
    }
}

/// Parses one line, without its line feed.
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
    /// Returns the effective user: the impersonated one, if any.
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

    /// Returns a query parameter.
    pub(super) fn parameter(&self, name: &str) -> Option<String> {
        let (_, query) = self.request_uri.split_once('?')?;
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let value = pairs.into_iter().find(|(key, _)| *key == name)?.1;
        Some(unescaped(value))
    }

    /// Returns an annotation of the event.
    pub(super) fn annotation(&self, key: &str) -> Option<&str> {
        self.annotations.as_ref()?.get(key).map(String::as_str)
    }
}

/// Decodes percent-encoding, and `+` as a blank; an invalid escape is kept.
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
