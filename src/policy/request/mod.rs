//! Defines the admission request to decide on: everything an `admission.k8s.io/v1` AdmissionReview carries, parsed once.
//!
//! The same value is built by the webhook from a body, by the embedded API server from its own request and by the
//! command line from manifests.

pub(crate) mod access;
pub(crate) mod exceptions;
pub(crate) mod host;
pub mod rbac;
pub(crate) mod review;

use std::fmt;
use std::str::FromStr;

use indexmap::IndexMap;
use serde_json::Value;
use thiserror::Error;

use self::review::Review;
use crate::read::decode::{DecodeError, Fields};
use crate::read::object::Object;

/// API group, version and kind.
///
/// ```
/// use admit_policy::GroupVersionKind;
/// use serde_json::json;
///
/// let kind = GroupVersionKind::new("apps", "v1", "Deployment");
/// assert_eq!(kind, GroupVersionKind::from_api_version("apps/v1", "Deployment"));
/// assert_eq!(kind, GroupVersionKind::of(&json!({"apiVersion": "apps/v1", "kind": "Deployment"})));
/// assert_eq!(kind.api_version(), "apps/v1");
/// ```
#[derive(Clone, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct GroupVersionKind {
    pub group: String,
    pub version: String,
    pub kind: String,
}

/// API group, version and plural resource name.
///
/// ```
/// use admit_policy::GroupVersionResource;
///
/// assert_eq!(GroupVersionResource::new("apps", "v1", "deployments").group_resource(), "deployments.apps");
/// ```
#[derive(Clone, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct GroupVersionResource {
    pub group: String,
    pub version: String,
    pub resource: String,
}

/// The operation of a request.
///
/// ```
/// assert_eq!(admit_policy::Operation::Create.as_str(), "CREATE");
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Operation {
    Create,
    Update,
    Delete,
    Connect,
}

/// The user who sent the request.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct UserInfo {
    pub username: String,
    pub uid: String,
    pub groups: Vec<String>,
    pub extra: IndexMap<String, Vec<String>>,
}

/// An admission request.
///
/// `kind` and `resource` are those of `object` and `old_object`; `request_kind` and `request_resource` are what the
/// client used, which differ only where the API server converted the objects for a webhook.
///
/// ```
/// use admit_policy::{Arena, Operation, Request, Review};
/// use serde_json::json;
///
/// let request = json!({
///     "uid": "1",
///     "kind": {"group": "", "version": "v1", "kind": "Pod"},
///     "resource": {"group": "", "version": "v1", "resource": "pods"},
///     "operation": "DELETE",
///     "name": "web",
///     "namespace": "shop",
/// });
/// assert_eq!(Request::from_value(&request)?.operation, Operation::Delete);
///
/// let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).to_string();
/// let arena = Arena::for_text(review.len());
/// let review = Review::read(&arena, review.as_bytes()).unwrap();
/// assert_eq!(Request::from_review(review)?.name, "web");
/// # Ok::<(), admit_policy::ReviewError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Request<'d> {
    pub uid: String,
    pub kind: GroupVersionKind,
    pub resource: GroupVersionResource,
    pub subresource: String,
    pub request_kind: GroupVersionKind,
    pub request_resource: GroupVersionResource,
    pub request_subresource: String,
    /// Empty when the server is to generate it.
    pub name: String,
    /// Empty for cluster-scoped resources. For a Namespace it is the namespace's own name.
    pub namespace: String,
    pub operation: Operation,
    pub user: UserInfo,
    /// Absent on DELETE.
    pub object: Option<Object<'d>>,
    /// Present on UPDATE and DELETE.
    pub old_object: Option<Object<'d>>,
    pub options: Option<Object<'d>>,
    pub dry_run: bool,
}

/// An AdmissionReview that cannot be decided on. `uid` is the request's where it could be read, so that the answer can
/// still carry it.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("{kind}")]
pub struct ReviewError {
    pub uid: Option<String>,
    pub kind: ReviewErrorKind,
}

/// Why an AdmissionReview is rejected.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum ReviewErrorKind {
    #[error("apiVersion must be `admission.k8s.io/v1`, not `{0}`")]
    ApiVersion(String),
    #[error("kind must be `AdmissionReview`, not `{0}`")]
    Kind(String),
    #[error("request: must be specified")]
    NoRequest,
    #[error("request.uid: must be specified")]
    NoUid,
    /// A field is missing without which no policy could match, so that nothing could deny the request.
    #[error("request.{0}: must be specified")]
    Unnamed(&'static str),
    #[error("request.operation: `{0}` is not one of CREATE, UPDATE, DELETE, CONNECT")]
    Operation(String),
    #[error("{0}")]
    Field(DecodeError),
}

impl<'d> Request<'d> {
    /// Parses a decoded AdmissionReview. The objects in it become those of the request without a copy.
    pub fn from_review(review: Review<'d>) -> Result<Self, ReviewError> {
        let Review { envelope, object, old_object, options } = review;
        let uid = envelope
            .pointer("/request/uid")
            .and_then(Value::as_str)
            .filter(|uid| !uid.is_empty())
            .map(ToOwned::to_owned);
        let rest = Self::decode_review(&envelope).map_err(|kind| ReviewError { uid, kind })?;
        Ok(Self { object, old_object, options, ..rest })
    }

    fn decode_review(review: &Value) -> Result<Self, ReviewErrorKind> {
        let fields = Fields::of(review, "")?;
        let api_version = fields.string("apiVersion")?;
        if api_version != "admission.k8s.io/v1" {
            return Err(ReviewErrorKind::ApiVersion(api_version));
        }
        let kind = fields.string("kind")?;
        if kind != "AdmissionReview" {
            return Err(ReviewErrorKind::Kind(kind));
        }
        let request = Self::decode(&fields.optional_object("request")?.ok_or(ReviewErrorKind::NoRequest)?)?;
        if request.uid.is_empty() {
            return Err(ReviewErrorKind::NoUid);
        }
        match request.unnamed() {
            Some(field) => Err(ReviewErrorKind::Unnamed(field)),
            None => Ok(request),
        }
    }

    /// Returns the identifying field that every API server sends and this request lacks.
    fn unnamed(&self) -> Option<&'static str> {
        let Self { kind, resource, .. } = self;
        let named = [
            ("kind.version", &kind.version),
            ("kind.kind", &kind.kind),
            ("resource.version", &resource.version),
            ("resource.resource", &resource.resource),
        ];
        named.into_iter().find(|(_, value)| value.is_empty()).map(|(field, _)| field)
    }

    /// Parses the `request` part of an AdmissionReview on its own, in which a uid may be missing.
    pub fn from_value(request: &Value) -> Result<Self, ReviewError> {
        let uid = request.get("uid").and_then(Value::as_str).map(ToOwned::to_owned);
        Fields::of(request, "request")
            .map_err(ReviewErrorKind::from)
            .and_then(|fields| Self::decode(&fields))
            .map_err(|kind| ReviewError { uid, kind })
    }

    fn decode(fields: &Fields<'_>) -> Result<Self, ReviewErrorKind> {
        let kind = group_version_kind(&fields.object("kind")?)?;
        let resource = group_version_resource(&fields.object("resource")?)?;
        let subresource = fields.string("subResource")?;
        let request_kind = fields.optional_object("requestKind")?;
        let request_resource = fields.optional_object("requestResource")?;
        let shared = |key: &str| fields.get(key).map(|value| Object::from(value.clone()));
        Ok(Self {
            uid: fields.string("uid")?,
            request_kind: request_kind
                .map_or_else(|| Ok(kind.clone()), |inner| group_version_kind(&inner))?,
            request_resource: request_resource
                .map_or_else(|| Ok(resource.clone()), |inner| group_version_resource(&inner))?,
            request_subresource: fields
                .optional_string("requestSubResource")?
                .unwrap_or_else(|| subresource.clone()),
            kind,
            resource,
            subresource,
            name: fields.string("name")?,
            namespace: fields.string("namespace")?,
            operation: fields.string("operation")?.parse()?,
            user: UserInfo::decode(&fields.object("userInfo")?)?,
            object: shared("object"),
            old_object: shared("oldObject"),
            options: shared("options"),
            dry_run: fields.bool("dryRun")?,
        })
    }
}

impl UserInfo {
    pub(crate) fn decode(fields: &Fields<'_>) -> Result<Self, DecodeError> {
        let extra = fields.object("extra")?;
        let extra =
            extra.keys().map(|key| Ok((key.clone(), extra.strings(key)?))).collect::<Result<_, _>>()?;
        Ok(Self {
            username: fields.string("username")?,
            uid: fields.string("uid")?,
            groups: fields.strings("groups")?,
            extra,
        })
    }
}

impl GroupVersionKind {
    pub fn new(group: impl Into<String>, version: impl Into<String>, kind: impl Into<String>) -> Self {
        Self { group: group.into(), version: version.into(), kind: kind.into() }
    }

    /// Splits `apiVersion` of a manifest: the core group has no slash.
    pub fn from_api_version(api_version: &str, kind: &str) -> Self {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Self::new(group, version, kind)
    }

    /// The group, version and kind of an object, by its `apiVersion` and `kind`; missing parts are empty.
    #[must_use]
    pub fn of(object: &Value) -> Self {
        let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
        Self::from_api_version(text("apiVersion"), text("kind"))
    }

    /// `group/version`, or the version alone in the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }
}

impl GroupVersionResource {
    pub fn new(group: impl Into<String>, version: impl Into<String>, resource: impl Into<String>) -> Self {
        Self { group: group.into(), version: version.into(), resource: resource.into() }
    }

    /// `resource.group`, or the resource alone in the core group: how Kubernetes names resources in messages.
    pub fn group_resource(&self) -> String {
        if self.group.is_empty() {
            self.resource.clone()
        } else {
            format!("{}.{}", self.resource, self.group)
        }
    }
}

impl Operation {
    /// The word used on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

impl FromStr for Operation {
    type Err = ReviewErrorKind;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        match word {
            "CREATE" => Ok(Self::Create),
            "UPDATE" => Ok(Self::Update),
            "DELETE" => Ok(Self::Delete),
            "CONNECT" => Ok(Self::Connect),
            other => Err(ReviewErrorKind::Operation(other.to_owned())),
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<DecodeError> for ReviewErrorKind {
    fn from(error: DecodeError) -> Self {
        Self::Field(error)
    }
}

fn group_version_kind(fields: &Fields<'_>) -> Result<GroupVersionKind, DecodeError> {
    Ok(GroupVersionKind {
        group: fields.string("group")?,
        version: fields.string("version")?,
        kind: fields.string("kind")?,
    })
}

fn group_version_resource(fields: &Fields<'_>) -> Result<GroupVersionResource, DecodeError> {
    Ok(GroupVersionResource {
        group: fields.string("group")?,
        version: fields.string("version")?,
        resource: fields.string("resource")?,
    })
}
