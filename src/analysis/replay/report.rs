//! What a replay found: counts, and groups of verdicts with samples. All of it is bounded, whatever the log's length.

use std::collections::BTreeMap;

use super::event::Unread;

/// What a policy does to a request. The later ones are the graver.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Effect {
    /// It is noted in the audit log.
    Audit,
    /// The client is warned.
    Warn,
    /// It would be denied, and an exception lets it through.
    Excepted,
    /// The policy cannot be evaluated, and lets the request pass.
    Error,
    /// The policy cannot be evaluated, and denies the request for that.
    DenyOnError,
    /// The request is denied.
    Deny,
}

impl Effect {
    /// The name of the effect in reports.
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

    /// Whether the request is refused.
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
    /// The event has no response object, as at level Request: what became of what was sent is not known.
    Response,
    /// The audit log left the objects out because they are large.
    Truncated,
    /// The object as it was before is not known.
    OldObject,
    /// Other writes to the object lie between the state that is known and this one, or are logged out of order.
    Order,
    /// The request was denied, and its patch cannot be applied here as the server applied it.
    Patch,
    /// The kind of the resource is not known.
    Kind,
    /// What was sent is not taken by the checks of the kind.
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
    /// No roles, and no answers of an authorizer, were given.
    Access,
    /// The object cannot be converted to the version that the policy asks for.
    Conversion,
}

impl Cause {
    /// The name of the cause in reports.
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

    /// The cause in words.
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

/// Who refused a request before, or beside, the policies.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Refused {
    /// 401: the user is not known.
    Authentication,
    /// 403: the user may not do this.
    Authorization,
    /// The object, or the request, is not valid.
    Validation,
    /// A webhook, or an admission plugin.
    Admission,
    /// There is no such object, there is one already, or it has changed meanwhile.
    Conflict,
    /// The server was busy.
    TooManyRequests,
    /// The server failed: what became of the request is not known.
    Server,
    /// Any other code.
    Other,
}

impl Refused {
    /// The name of the reason in reports.
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

/// How many there are of what.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counts {
    /// Lines that are not blank.
    pub lines: u64,
    /// Audit events, of every stage.
    pub events: u64,
    /// AdmissionReviews.
    pub reviews: u64,
    /// Events of other stages than `ResponseComplete`, which are of no request of its own.
    pub other_stages: u64,
    /// Requests that read, or are about no resource.
    pub reads: u64,
    /// Requests that something else refused.
    pub refused: u64,
    /// Requests that no policy, and no definition, is about.
    pub unmatched: u64,
    /// Requests that would be admitted, with warnings or without.
    pub admitted: u64,
    /// Those of them that would be warned of.
    pub warned: u64,
    /// Requests that would be denied.
    pub denied: u64,
    /// Requests that cannot be decided.
    pub undecided: u64,
    /// Requests that were denied when they were made, and are decided on the object as it was sent, with defaults: what
    /// webhooks had made of it is not in the log.
    pub as_sent: u64,
    /// Requests that changed nothing because they were dry runs.
    pub dry_runs: u64,
    /// Requests that were admitted when they were made, and would be denied.
    pub newly_denied: u64,
    /// Requests that a ValidatingAdmissionPolicy denied when they were made, and would be admitted.
    pub newly_admitted: u64,
    /// Requests about which two folders of policies do not say the same.
    pub changed: u64,
    /// Effects in no group, because there are too many groups.
    pub beyond: u64,
    /// States of objects that were given up for want of room.
    pub evicted: u64,
}

/// What tells groups apart.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct GroupKey {
    /// The policy; for a definition `CustomResourceDefinition NAME`.
    pub policy: String,
    /// The name of the user.
    pub user: String,
    /// Empty for what is in none.
    pub namespace: String,
    /// `Deployment.apps`; the core group has no name.
    pub kind: String,
    /// What the old folder does, where two are compared.
    pub before: Option<Effect>,
    /// What the policy does; nothing only where two folders are compared.
    pub effect: Option<Effect>,
}

/// Requests to which one policy does the same.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Group {
    /// How many.
    pub count: u64,
    /// When the first was received, and the last, as the log has it; empty where it does not say.
    pub first: String,
    /// See `first`.
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

/// What was found.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Report {
    /// How many there are of what.
    pub counts: Counts,
    /// Whether two folders of policies were compared.
    pub compared: bool,
    /// What would be done to requests, by policy, user, namespace and kind.
    pub groups: BTreeMap<GroupKey, Group>,
    /// Requests that cannot be decided, by cause and resource.
    pub undecided: BTreeMap<(Cause, String), Undecided>,
    /// Requests that something else refused.
    pub refused: BTreeMap<Refused, u64>,
    /// Lines that cannot be read.
    pub unread: BTreeMap<Unread, UnreadLines>,
}

/// Where a line stands.
#[derive(Clone, Copy, Debug)]
pub struct Place<'p> {
    /// The name of the file.
    pub file: &'p str,
    /// From 1.
    pub line: u64,
}
