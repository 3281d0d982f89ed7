//! Decides whether the ClusterOperators of a payload are healthy, with the checks, reasons and messages of the
//! cluster version operator, which installers and updates wait for. Pure.

use std::fmt;

use super::crd::{ClusterOperator, OperandVersion};
use super::payload::Wanted;

/// Why one ClusterOperator is not healthy, by the first check that fails.
#[derive(Clone, Debug, PartialEq)]
pub enum Trouble {
    /// Its manifest has no versions, so that it is unknown whether it is up to date.
    NoVersions,
    NotFound,
    NotAvailable,
    Degraded,
    /// Some versions are missing or different: `operator to 4.5`.
    Updating(Vec<String>),
}

impl Trouble {
    /// Returns the reason as the cluster version operator names it.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::NoVersions => "ClusterOperatorNoVersions",
            Self::NotFound => "ClusterOperatorNotFound",
            Self::NotAvailable => "ClusterOperatorNotAvailable",
            Self::Degraded => "ClusterOperatorDegraded",
            Self::Updating(_) => "ClusterOperatorUpdating",
        }
    }

    /// Returns the reason for several ClusterOperators with the same trouble.
    #[must_use]
    pub fn plural_reason(&self) -> &'static str {
        match self {
            Self::NoVersions => "ClusterOperatorsNoVersions",
            Self::NotFound => "ClusterOperatorsNotFound",
            Self::NotAvailable => "ClusterOperatorsNotAvailable",
            Self::Degraded => "ClusterOperatorsDegraded",
            Self::Updating(_) => "ClusterOperatorsUpdating",
        }
    }
}

/// The gate's verdict on one ClusterOperator.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    pub name: String,
    pub trouble: Option<Trouble>,
    /// Degraded, which is tolerated while the cluster is being installed.
    pub reported: bool,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        match &self.trouble {
            None if self.reported => write!(f, "Cluster operator {name} is degraded"),
            None => write!(f, "Cluster operator {name} is well"),
            Some(Trouble::NoVersions) => write!(f, "Cluster operator {name} expects no versions"),
            Some(Trouble::NotFound) => write!(f, "Cluster operator {name} is not found"),
            Some(Trouble::NotAvailable) => write!(f, "Cluster operator {name} is not available"),
            Some(Trouble::Degraded) => write!(f, "Cluster operator {name} is degraded"),
            Some(Trouble::Updating(missing)) => {
                write!(f, "Cluster operator {name} is updating versions")?;
                if missing.is_empty() { Ok(()) } else { write!(f, ": {}", missing.join(", ")) }
            }
        }
    }
}

/// Returns the verdict on `wanted`. While the cluster is being installed (`initializing`), versions do not count, and a
/// degraded operator is reported without failing the gate. Progressing never counts.
#[must_use]
pub fn verdict(wanted: &Wanted, live: Option<&ClusterOperator>, initializing: bool) -> Verdict {
    let of = |trouble| Verdict { name: wanted.name.clone(), trouble, reported: false };
    if wanted.versions.is_empty() {
        return of(Some(Trouble::NoVersions));
    }
    let Some(live) = live else { return of(Some(Trouble::NotFound)) };
    if live.condition("Available") != Some("True") {
        return of(Some(Trouble::NotAvailable));
    }
    // Without the condition Degraded it counts as degraded.
    let degraded = live.condition("Degraded") != Some("False");
    if degraded && !initializing {
        return of(Some(Trouble::Degraded));
    }
    let missing = missing_versions(&wanted.versions, &live.report().versions);
    if !missing.is_empty() && !initializing {
        return of(Some(Trouble::Updating(missing)));
    }
    Verdict { reported: degraded, ..of(None) }
}

fn missing_versions(expected: &[OperandVersion], running: &[OperandVersion]) -> Vec<String> {
    let others = expected.iter().filter(|expected| !running.contains(expected));
    others.map(|expected| format!("{} to {}", expected.name, expected.version)).collect()
}
