//! Defines the result of a decision: whether a request is denied, and by which rule of which policy.
//!
//! A [`Decision`] carries what the caller needs to answer as kube-apiserver does (status, warnings, audit
//! annotations) and, per policy, what a test or a report needs. How it travels is left to the callers.

use std::fmt;
use std::sync::Arc;

use admit_apimachinery::status::StatusCause;
pub use admit_apimachinery::status::{Reason, Status, StatusDetails};
use indexmap::IndexMap;

use crate::request::Request;

/// The answer to one request.
///
/// ```
/// use admit_apimachinery::status::Reason;
/// use admit_policy::{Decision, Denial, Request};
/// use serde_json::json;
///
/// let mut decision = Decision::default();
/// assert!(decision.allowed());
/// let request = json!({
///     "kind": {"group": "", "version": "v1", "kind": "Pod"},
///     "resource": {"group": "", "version": "v1", "resource": "pods"},
///     "operation": "CREATE",
///     "name": "web",
/// });
/// decision.denial = Some(Denial::new(&Request::from_value(&request)?, "too late".to_owned(), Reason::Invalid));
/// assert!(!decision.allowed());
/// # Ok::<(), admit_policy::ReviewError>(())
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Decision {
    /// Present when the request is denied.
    pub denial: Option<Denial>,
    /// Texts for the client, without the `299` header frame.
    pub warnings: Vec<String>,
    pub audit_annotations: IndexMap<String, String>,
    /// The result of each policy that matched, in the order of evaluation.
    pub outcomes: Vec<PolicyOutcome>,
}

/// A denial, with its message and `Status`.
///
/// [`Decision`] has an example.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Denial {
    /// Which policy, with which binding, denied and why: `ValidatingAdmissionPolicy 'P' with binding …`.
    pub message: String,
    pub reason: Reason,
    /// The `Status` that a client of kube-apiserver gets.
    pub status: Status,
}

/// The result of one policy with one binding and one param.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PolicyOutcome {
    pub policy: Arc<str>,
    /// The binding; absent where the policy failed before its bindings were considered.
    pub binding: Option<Arc<str>>,
    /// `namespace/name` of the param in use.
    pub param: Option<String>,
    /// Why the rules were not evaluated, if they were not.
    pub skipped: Option<Skipped>,
    /// The result of each rule; empty when they were not evaluated.
    pub rules: Vec<RuleOutcome>,
    /// The exception that lets the request through, or did until it ended; only where the policy denies.
    pub excepted: Option<Excepted>,
}

/// An exception that is about a denied request.
///
/// [`PolicyException`](crate::PolicyException) has an example.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Excepted {
    /// The name of the exception.
    pub name: Arc<str>,
    /// The reason for the exception.
    pub reason: Arc<str>,
    /// When it ends, or ended, as in `2027-01-01T00:00:00Z`.
    pub until: Arc<str>,
    /// Whether the request is admitted; else it is denied as without an exception.
    pub in_force: bool,
}

impl fmt::Display for Excepted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, reason, until, in_force } = self;
        match in_force {
            true => write!(f, "exception '{name}' lets it through until {until}: {reason}"),
            false => write!(f, "exception '{name}' let it through until {until}: {reason}"),
        }
    }
}

/// Why the rules of a policy were not evaluated: a match condition or an exception prevented it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Skipped {
    /// A condition is false: its path in the policy, `spec.matchConditions[0].expression`.
    False { path: String },
    /// They failed, and the policy ignores failures.
    Failed { message: String },
    /// An exception lets the request pass a policy by that changes objects.
    Excepted(Excepted),
}

/// The result of one rule.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RuleOutcome {
    pub path: RulePath,
    pub verdict: Verdict,
    /// The actions of the binding on failure; empty where a failure has no effect.
    pub enforced: Vec<Enforcement>,
}

/// The location of a rule in its policy, displayed as a path: `spec.validations[0]`. Indices are those of the
/// policy's lists.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RulePath {
    /// The `matchConstraints` of a policy whose matching failed.
    MatchConstraints,
    /// The `paramRef` of a binding that cannot be applied.
    ParamRef,
    Validation(usize),
    AuditAnnotation(usize),
    /// A mutation of a policy, by index.
    Mutation(usize),
}

/// The verdict of one rule.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Verdict {
    Admitted,
    Failed {
        message: String,
        reason: Reason,
    },
    /// The rule failed; `denies` says what failurePolicy made of that.
    Errored {
        message: String,
        denies: bool,
    },
}

/// A binding's validationAction.
///
/// ```
/// use admit_policy::Enforcement;
///
/// assert_eq!(Enforcement::from_name("Warn").map(Enforcement::as_str), Some("Warn"));
/// assert_eq!(Enforcement::from_name("warn"), None);
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Enforcement {
    Deny,
    Warn,
    Audit,
}

impl fmt::Display for RulePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MatchConstraints => f.write_str("spec.matchConstraints"),
            Self::ParamRef => f.write_str("spec.paramRef"),
            Self::Validation(index) => write!(f, "spec.validations[{index}]"),
            Self::AuditAnnotation(index) => write!(f, "spec.auditAnnotations[{index}]"),
            Self::Mutation(index) => write!(f, "spec.mutations[{index}]"),
        }
    }
}

impl Decision {
    pub fn allowed(&self) -> bool {
        self.denial.is_none()
    }
}

impl Denial {
    /// The denial of `request` for `reason`, with kube-apiserver's message.
    pub fn new(request: &Request<'_>, message: String, reason: Reason) -> Self {
        let name = display_name(request);
        let resource = &request.request_resource;
        let forbidden = format!("{} \"{name}\" is forbidden: {message}", resource.group_resource());
        let cause = StatusCause { reason: "".into(), message: message.clone(), field: String::new() };
        let status = Status::new(reason, forbidden).with(StatusDetails {
            name,
            group: resource.group.clone(),
            kind: resource.resource.clone(),
            causes: vec![cause],
            ..StatusDetails::default()
        });
        Self { message, reason, status }
    }
}

/// The reason of that name, if it is one that a validation may give.
pub(crate) fn reason_named(name: &str) -> Option<Reason> {
    [Reason::Invalid, Reason::Forbidden, Reason::Unauthorized, Reason::RequestEntityTooLarge]
        .into_iter()
        .find(|reason| reason.as_str() == name)
}

impl Enforcement {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deny => "Deny",
            Self::Warn => "Warn",
            Self::Audit => "Audit",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Deny, Self::Warn, Self::Audit].into_iter().find(|action| action.as_str() == name)
    }
}

/// The name to show: a name still to be generated shows its prefix, and an object without either is `Unknown`.
fn display_name(request: &Request<'_>) -> String {
    if !request.name.is_empty() {
        return request.name.clone();
    }
    let metadata = |field: &str| {
        let text = request.object.as_ref()?.metadata(field)?;
        (!text.is_empty()).then(|| text.to_owned())
    };
    metadata("name").or_else(|| metadata("generateName")).unwrap_or_else(|| "Unknown".to_owned())
}
