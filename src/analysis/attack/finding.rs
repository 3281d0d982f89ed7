//! What is found: pairs of a request that is denied and one that is admitted, which differ in little.

use std::fmt;
use std::str::FromStr;

use serde_json::Value;
use thiserror::Error;

use super::ask::Ask;

/// How a request that is admitted differs from one that is denied.
///
/// ```
/// use admit_analysis::attack::Family;
///
/// assert_eq!("siblings".parse(), Ok(Family::Siblings));
/// assert!(Family::ALL.iter().all(|family| family.as_str().parse() == Ok(*family)));
/// assert!(Family::Siblings.meaning().contains("same type"));
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Family {
    /// The same in another place of the same type.
    Siblings,
    /// The same below an object of another kind.
    Workloads,
    /// The same through a subresource.
    Subresources,
    /// The same by another operation.
    Operations,
    /// The same in another version or group.
    Versions,
    /// What is left out has the same effect.
    Absent,
    /// A label or an annotation that the requester sets.
    Labels,
    /// An error that is passed over.
    Errors,
    /// A namespace or name that is left out, or params that are not there.
    Bindings,
    /// The same value, written otherwise.
    Spellings,
}

/// There is no such family.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error(
    "`{0}` is not one of siblings, workloads, subresources, operations, versions, absent, labels, errors, bindings, spellings"
)]
pub struct UnknownFamily(pub String);

impl Family {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Siblings,
        Self::Workloads,
        Self::Subresources,
        Self::Operations,
        Self::Versions,
        Self::Absent,
        Self::Labels,
        Self::Errors,
        Self::Bindings,
        Self::Spellings,
    ];

    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Siblings => "siblings",
            Self::Workloads => "workloads",
            Self::Subresources => "subresources",
            Self::Operations => "operations",
            Self::Versions => "versions",
            Self::Absent => "absent",
            Self::Labels => "labels",
            Self::Errors => "errors",
            Self::Bindings => "bindings",
            Self::Spellings => "spellings",
        }
    }

    /// What it is, in one line.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Siblings => "the same in another place of the same type",
            Self::Workloads => "the same in an object of another kind",
            Self::Subresources => "the same through a subresource",
            Self::Operations => "the same by another operation",
            Self::Versions => "the same in another version or group",
            Self::Absent => "a field that is left out, empty or written out to the same effect",
            Self::Labels => "a label or annotation that the requester sets",
            Self::Errors => "an error of the policy that is passed over",
            Self::Bindings => "a namespace or name that is left out, or params that are not there",
            Self::Spellings => "the same value, written otherwise",
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Family {
    type Err = UnknownFamily;

    fn from_str(text: &str) -> Result<Self, UnknownFamily> {
        let found = Self::ALL.into_iter().find(|family| family.as_str() == text);
        found.ok_or_else(|| UnknownFamily(text.to_owned()))
    }
}

/// A request that is denied, and its neighbour that is admitted: both were put to the engine.
///
/// [`Inquiry`](super::Inquiry) has an example.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// How they differ.
    pub family: Family,
    /// The place by which they differ: of the object, or of what matches it.
    pub path: String,
    /// What gets past, in one line.
    pub what: String,
    /// In how many places they differ.
    pub differences: usize,
    /// What the denied request is denied for: the place in its object, or `request` where that does not matter.
    pub offence: String,
    /// What stands there; none where something is missing.
    pub value: Option<Value>,
    /// The request that is denied.
    pub denied: Ask,
    /// A request that is admitted and has to be made before the other one, where one is not enough; and what suites say of it.
    pub first: Option<(Ask, &'static str)>,
    /// The request that is admitted.
    pub admitted: Ask,
    /// What suites say of it: `allow`, `unmatched`, or `error` where an error was passed over.
    pub outcome: &'static str,
    /// What suites say of the denied one: `deny`, or `error` where the policy fails.
    pub denied_outcome: &'static str,
}

/// What was found of one policy.
///
/// [`Inquiry`](super::Inquiry) has an example.
#[derive(Clone, Debug, PartialEq)]
pub struct Attacked {
    /// The least different pairs first.
    pub findings: Vec<Finding>,
    /// Denied requests that were started from.
    pub denied: usize,
    /// Requests that were put to the engine.
    pub tried: usize,
    /// Why it is not known what gets past; none where everything was tried.
    pub undecided: Option<Undecided>,
}

/// Why it is not known what gets past a policy.
///
/// [`Inquiry`](super::Inquiry) has an example.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum Undecided {
    /// Nothing to start from.
    #[error("no request is known that it denies: give one with --suite or -f")]
    NothingDenied,
    /// No binding, or none that denies.
    #[error("no binding enforces it with Deny")]
    NotEnforced,
    /// It is not known what for a request is denied.
    #[error(
        "no change of a field was found that makes it admit what it denies: give requests that it admits with --suite or -f"
    )]
    NoReason,
    /// The time was over.
    #[error("the time was over before everything was tried")]
    Interrupted,
}

/// A pair that the engine does not answer as it did while neighbours were looked for: a mistake of this program.
#[derive(Clone, Debug, Error, PartialEq)]
#[error(
    "{policy}: {family} at {path}: `admit test` does not say of both requests what was found; please report this"
)]
pub struct Unconfirmed {
    /// The policy.
    pub policy: String,
    /// The family.
    pub family: Family,
    /// The place.
    pub path: String,
}
