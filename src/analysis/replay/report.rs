//! Defines the report of a replay: counts, and groups of verdicts with samples. Its size is bounded, whatever the log's length.

use std::collections::BTreeMap;

use super::event::Unread;

/// What a policy does to a request, in order of increasing severity.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Effect {
    /// A violation is recorded in the audit log.
    Audit,
    /// The client is warned.
    Warn,
    /// It would be denied, but an exception admits it.
    Excepted,
    /// The policy fails to evaluate and admits the request (failurePolicy Ignore).
    Error,
    /// The policy fails to evaluate and denies the request (failurePolicy Fail).
    DenyOnError,
    /// The request is denied.
    Deny,
}

impl Effect {
    /// Returns the name of the effect in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Audit => "audit",
            Self::Warn => "warn",
            Self::Excepted => "excepted",
            Self::Error => "error",
            Self::DenyOnError => "denyOnError",
            Self::Deny => "deny",
        }
    }

    /// Reports whether the request is denied.
    #[must_use]
    pub const fn denies(self) -> bool {
        matches!(self, Self::Deny | Self::DenyOnError)
    }
}

/// Why a request cannot be decided.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Cause {
    /// The event was logged without its objects: at level Metadata.
    Level,
    /// The event has no response object, as at level Request: the stored object is unknown.
    Response,
    /// The audit log left the objects out because they are large.
    Truncated,
    /// The object as it was before is not known.
    OldObject,
    /// Other writes lie between the known state of the object and this one, or the log is out of order.
    Order,
    /// The request was denied, and its patch cannot be applied here as the server applied it.
    Patch,
    /// The kind of the resource is not known.
    Kind,
    /// The validation of the kind rejects the object that was sent.
    Invalid,
    /// An object in the event cannot be read.
    Unreadable,
    /// The options of a connection are not logged.
    Connect,
    /// One event deletes many objects.
    Collection,
    /// The labels of the Namespace are not known.
    Namespace,
    /// No params were given.
    Params,
    /// Neither roles nor authorizer answers were given.
    Access,
    /// The object cannot be converted to the version that the policy asks for.
    Conversion,
}

impl Cause {
    /// Returns the name of the cause in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Level => "level",
            Self::Response => "response",
            Self::Truncated => "truncated",
            Self::OldObject => "oldObject",
            Self::Order => "order",
            Self::Patch => "patch",
            Self::Kind => "kind",
            Self::Invalid => "invalid",
            Self::Unreadable => "unreadable",
            Self::Connect => "connect",
            Self::Collection => "collection",
            Self::Namespace => "namespace",
            Self::Params => "params",
            Self::Access => "access",
            Self::Conversion => "conversion",
        }
    }

    /// Returns a description of the cause.
    #[must_use]
    pub const fn told(self) -> &'static str {
        match self {
            Self::Level => "logged at level Metadata, without objects",
            Self::Response => "logged without the response object, as at level Request",
            Self::Truncated => "the audit log left out objects for their size",
            Self::OldObject => "the object as it was before is not known; --state can tell of it",
            Self::Order => "writes to the object are missing in the log, or out of order",
            Self::Patch => "it was denied, and what its patch comes to is not certain",
            Self::Kind => "the kind of the resource is not known; --policies can have its definition",
            Self::Invalid => "what was sent is not valid here",
            Self::Unreadable => "an object of the event cannot be read",
            Self::Connect => "the options of connections are not logged",
            Self::Collection => "one event deletes many objects",
            Self::Namespace => "the Namespace is not known; --state or --policies can tell of it",
            Self::Params => "no params of the kind are known; --state or --policies can tell of them",
            Self::Access => "who may do what is not known; --authorizer or roles in --policies can tell",
            Self::Conversion => "the object cannot be converted to another version",
        }
    }
}

/// What refused a request other than the replayed policies.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Refused {
    /// 401: the user was not authenticated.
    Authentication,
    /// 403: the user was not authorized.
    Authorization,
    /// The object, or the request, is not valid.
    Validation,
    /// A webhook, or an admission plugin.
    Admission,
    /// The object does not exist, exists already, or was changed concurrently.
    Conflict,
    /// The server was busy.
    TooManyRequests,
    /// The server failed: the outcome is unknown.
    Server,
    /// Any other code.
    Other,
}

impl Refused {
    /// Returns the name of the reason in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Authentication => "authentication",
            Self::Authorization => "authorization",
            Self::Validation => "validation",
            Self::Admission => "admission",
            Self::Conflict => "conflict",
            Self::TooManyRequests => "tooManyRequests",
            Self::Server => "server",
            Self::Other => "other",
        }
    }
}

/// The counts of a report.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counts {
    /// Lines that are not blank.
    pub lines: u64,
    /// Audit events, of every stage.
    pub events: u64,
    /// AdmissionReviews.
    pub reviews: u64,
    /// Events of stages other than `ResponseComplete`, which record no further request.
    pub other_stages: u64,
    /// Read requests, and requests that are not about a resource.
    pub reads: u64,
    /// Requests that something other than the replayed policies refused.
    pub refused: u64,
    /// Requests that match no policy and no definition.
    pub unmatched: u64,
    /// Requests that would be admitted, with warnings or without.
    pub admitted: u64,
    /// Those of them that would get a warning.
    pub warned: u64,
    /// Requests that would be denied.
    pub denied: u64,
    /// Requests that cannot be decided.
    pub undecided: u64,
    /// Requests that were denied when they were made, decided on the object as sent, with defaults: changes by webhooks are not in the
    /// log.
    pub as_sent: u64,
    /// Requests that changed nothing because they were dry runs.
    pub dry_runs: u64,
    /// Requests that were admitted when they were made, and would be denied.
    pub newly_denied: u64,
    /// Requests that a ValidatingAdmissionPolicy denied when they were made, and would be admitted.
    pub newly_admitted: u64,
    /// Requests for which the two folders of policies differ.
    pub changed: u64,
    /// Effects that are in no group because the maximum size of groups was reached.
    pub beyond: u64,
    /// Object states that were evicted for lack of space.
    pub evicted: u64,
}

/// The key of a group.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct GroupKey {
    /// The policy; for a definition `CustomResourceDefinition NAME`.
    pub policy: String,
    /// The name of the user.
    pub user: String,
    /// The namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// `Deployment.apps`; the core group has no name.
    pub kind: String,
    /// The effect under the older folder, if two are compared.
    pub before: Option<Effect>,
    /// The effect of the policy; `None` only if two folders are compared.
    pub effect: Option<Effect>,
}

/// Requests on which one policy has the same effect.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Group {
    /// How many.
    pub count: u64,
    /// When the first was received; empty if the log does not say.
    pub first: String,
    /// When the last was received; empty if the log does not say.
    pub last: String,
    /// The first three.
    pub samples: Vec<Sample>,
}

/// One request.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Sample {
    /// The id of the audit event, or of the review.
    pub audit_id: String,
    /// The name of the object; may be empty where the server chose it.
    pub name: String,
    /// What the policy says.
    pub message: String,
    /// `FILE:LINE`.
    pub place: String,
}

/// Requests that cannot be decided for one cause.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Undecided {
    /// How many.
    pub count: u64,
    /// The first three; without messages.
    pub samples: Vec<Sample>,
}

/// Lines that cannot be read for one cause.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct UnreadLines {
    /// How many.
    pub count: u64,
    /// `FILE:LINE` of the first ten.
    pub places: Vec<String>,
}

/// The result of a replay.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Report {
    /// The counts.
    pub counts: Counts,
    /// Whether two folders of policies were compared.
    pub compared: bool,
    /// Effects on requests, by policy, user, namespace and kind.
    pub groups: BTreeMap<GroupKey, Group>,
    /// Requests that cannot be decided, by cause and resource.
    pub undecided: BTreeMap<(Cause, String), Undecided>,
    /// Requests that something else refused.
    pub refused: BTreeMap<Refused, u64>,
    /// Lines that cannot be read.
    pub unread: BTreeMap<Unread, UnreadLines>,
}

/// The location of a line.
#[derive(Clone, Copy, Debug)]
pub struct Place<'p> {
    /// The name of the file.
    pub file: &'p str,
    /// The line number, from 1.
    pub line: u64,
}
