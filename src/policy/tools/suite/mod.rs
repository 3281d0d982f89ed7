//! Runs declarative test cases: a request, and the expected verdict of policies and CRDs.
//!
//! ```text
//! Suite document ──Suite::decode──► Suite ──cases──► run(case, PolicySet) ──► CaseResult
//! ```
//!
//! A suite names the documents it tests; reading them is left to the caller. The format is documented in
//! `policies/README.md`. A case that reached no rule is `unmatched`, which is never a pass unless it is what the case
//! expects. Nor is a refusal of the object by the server itself, which keeps policies from being asked, unless the case
//! names what the server says.

mod builtin;
pub mod crd;
mod decode;
mod expect;
mod place;
mod plugged;
mod reach;
mod run;
mod target;

use std::sync::Arc;
use std::time::SystemTime;

use serde_json::Value;

pub use self::decode::{ACCEPTED_FIELDS, CASE_FIELDS, EXPECT_FIELDS, STATES_FIELDS, SUITE_FIELDS};
pub use self::expect::{Expectation, ExpectedReason, Mismatch, Text};
pub use self::place::{
    AUTHENTICATION_FIELDS, AUTHORIZATION_FIELDS, DEVICES_FIELDS, PlaceCase, PlaceDocuments, PlaceError,
    WEBHOOK_FIELDS, run_place,
};
pub use self::reach::request;
pub use self::run::{CaseResult, Reached, run, run_recorded};
use crate::request::access::AccessAnswers;
use crate::request::{Operation, UserInfo};

/// The `apiVersion` of suites.
pub const API_VERSION: &str = "admit/v1";

/// The tests of one file.
///
/// ```
/// use admit_policy::suite::{Outcome, Suite};
/// use serde_json::json;
///
/// let document = json!({
///     "apiVersion": "admit/v1",
///     "kind": "Suite",
///     "cases": [{"name": "a", "object": {"apiVersion": "v1", "kind": "Pod"}, "expect": {"outcome": "allow"}}],
/// });
/// assert!(Suite::is(&document));
/// let suite = Suite::decode_knowing(&document, None)?;
/// assert_eq!(suite.cases[0].expect.outcome, Outcome::Allow);
/// assert_eq!(Suite::decode(&document)?.cases.len(), 1);
/// # Ok::<(), admit_policy::FieldsError>(())
/// ```
#[derive(Debug)]
pub struct Suite {
    /// Files and folders to load, relative to the suite; empty means the suite's own folder.
    pub documents: Vec<String>,
    pub cases: Vec<Case>,
    /// Pictures of fields that are expected.
    pub states: Vec<StatesCase>,
    /// Known evasions of policies that are accepted.
    pub accepted: Vec<Accepted>,
    /// Tokens, authorizers, webhooks and devices.
    pub places: Vec<PlaceCase>,
}

/// A request that gets past a policy, and is meant to, as `admit attack` names it.
///
/// ```
/// use admit_policy::suite::Suite;
/// use serde_json::json;
///
/// let suite = Suite::decode(&json!({
///     "apiVersion": "admit/v1", "kind": "Suite",
///     "accepted": [{"policy": "a", "family": "operations", "path": "UPDATE", "reason": "it cannot change"}],
/// }))?;
/// assert_eq!(suite.accepted[0].reason, "it cannot change");
/// # Ok::<(), admit_policy::FieldsError>(())
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Accepted {
    /// The policy.
    pub policy: String,
    /// `siblings`, `operations`, …
    pub family: String,
    /// The place by which the request differs from one that is denied.
    pub path: String,
    /// Why that is acceptable.
    pub reason: String,
}

/// Which values of a field are to follow one another.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StatesCase {
    pub name: String,
    /// The kind whose objects change; absent where the documents define one that has the field.
    pub kind: Option<String>,
    pub subject: StatesOf,
    /// An expression over `self`: only objects are meant for which it holds, from their creation on.
    pub only: Option<String>,
    /// Users to try where rules read the user.
    pub users: Vec<String>,
    /// `A -> B`, `[*] -> A` for a creation, `A -> [*]` where nothing may follow.
    pub expect: Vec<String>,
}

/// What follows one another.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum StatesOf {
    /// The values of a field: `status.phase`.
    Field(String),
    /// The value of an expression over `self`.
    State(String),
}

/// A request and its expected result.
#[derive(Debug)]
pub struct Case {
    pub name: String,
    /// The policies in force; empty for all that are loaded.
    pub policies: Vec<String>,
    pub operation: Operation,
    /// Plural name, `deployments` or `deployments.apps`; found from the CRDs or guessed from the kind where absent.
    pub resource: Option<String>,
    pub subresource: String,
    pub namespace: Option<String>,
    /// The name of the request's target; that of the object if absent.
    pub request_name: Option<String>,
    pub object: Option<Arc<Value>>,
    pub old_object: Option<Arc<Value>>,
    pub options: Option<Arc<Value>>,
    pub dry_run: bool,
    pub user: UserInfo,
    /// Objects that exist for this case, in place of loaded ones of the same name: params and Namespaces.
    pub existing: Vec<Arc<Value>>,
    /// Predefined answers of the authorizer; absent if there is no authorizer.
    pub access: Option<Arc<AccessAnswers>>,
    /// The time of the request, if exceptions depend on it; else the time of the run.
    pub now: Option<SystemTime>,
    pub expect: Expectation,
}

/// The outcome of a request, as tests distinguish it.
///
/// ```
/// use admit_policy::suite::Outcome;
///
/// assert_eq!(Outcome::from_name("deny").map(Outcome::as_str), Some("deny"));
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Outcome {
    Allow,
    Deny,
    /// Allowed, with a warning.
    Warn,
    /// Allowed, with an audit annotation about a failed rule.
    Audit,
    /// No rule was reached.
    #[default]
    Unmatched,
    /// A rule could not be decided.
    Error,
}

impl Outcome {
    const ALL: [Self; 6] = [Self::Allow, Self::Deny, Self::Warn, Self::Audit, Self::Unmatched, Self::Error];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Warn => "warn",
            Self::Audit => "audit",
            Self::Unmatched => "unmatched",
            Self::Error => "error",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.as_str() == name)
    }
}
