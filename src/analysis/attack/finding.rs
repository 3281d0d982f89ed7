//! Defines findings: pairs of a denied request and a similar one that is admitted.

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
    /// The same value in another field of the same type.
    Siblings,
    /// The same value in an object of another kind.
    Workloads,
    /// The same change through a subresource.
    Subresources,
    /// The same change by another operation.
    Operations,
    /// The same object in another version or group.
    Versions,
    /// A field is left out, with the same effect.
    Absent,
    /// A label or an annotation that the requester sets.
    Labels,
    /// An evaluation error that the failure policy ignores.
    Errors,
    /// An excluded namespace or name, or missing params.
    Bindings,
    /// The same value, written otherwise.
    Spellings,
}

/// The error for an unknown family name.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error(
    "`{0}` is not one of siblings, workloads, subresources, operations, versions, absent, labels, errors, bindings, spellings"
)]
pub struct UnknownFamily(pub String);

impl Family {
    /// All families.
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

    /// Returns its name.
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

    /// Returns its description in one line.
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

/// A denied request, and a similar one that is admitted. Both were evaluated by the engine.
///
/// [`Inquiry`](super::Inquiry) has an example.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// How they differ.
    pub family: Family,
    /// The field by which they differ: of the object, or of the request.
    pub path: String,
    /// One line that says what evades the policy.
    pub what: String,
    /// The number of differences between them.
    pub differences: usize,
    /// The field that the denied request is denied for, or `request` where its object does not matter.
    pub offence: String,
    /// The value of that field; None where it is denied for being absent.
    pub value: Option<Value>,
    /// The request that is denied.
    pub denied: Ask,
    /// An admitted request that has to precede the other one, where one request is not enough; with its outcome in suites.
    pub first: Option<(Ask, &'static str)>,
    /// The request that is admitted.
    pub admitted: Ask,
    /// Its outcome as suites write it: `allow`, `unmatched`, or `error` where an error was passed over.
    pub outcome: &'static str,
    /// The outcome of the denied request as suites write it: `deny`, or `error` where the policy fails.
    pub denied_outcome: &'static str,
}

/// The findings about one policy.
///
/// [`Inquiry`](super::Inquiry) has an example.
#[derive(Clone, Debug, PartialEq)]
pub struct Attacked {
    /// Ordered by the number of differences, fewest first.
    pub findings: Vec<Finding>,
    /// The number of denied requests that the search started from.
    pub denied: usize,
    /// The number of requests that were evaluated.
    pub tried: usize,
    /// Why the search is incomplete; None where everything was tried.
    pub undecided: Option<Undecided>,
}

/// Why the search for a policy is incomplete.
///
/// [`Inquiry`](super::Inquiry) has an example.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum Undecided {
    /// No denied request to start from.
    #[error("no request is known that it denies: give one with --suite or -f")]
    NothingDenied,
    /// No binding, or none that denies.
    #[error("no binding enforces it with Deny")]
    NotEnforced,
    /// What exactly is denied cannot be determined.
    #[error(
        "no change of a field was found that makes it admit what it denies: give requests that it admits with --suite or -f"
    )]
    NoReason,
    /// Time ran out.
    #[error("the time was over before everything was tried")]
    Interrupted,
}

/// A pair whose outcomes differ when it is evaluated again: a bug of this program.
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
