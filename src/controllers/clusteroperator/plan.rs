//! Decides the next step for one ClusterOperator of the payload. Pure.
//!
//! | state | test | step |
//! |---|---|---|
//! | absent | not in the cluster | create, then prime |
//! | half primed | no conditions, versions or related objects; made by us, or older than the grace | prime |
//! | young | the same, made by another a moment ago | look again when the grace is over |
//! | reported | anything else | leave |
//!
//! ClusterOperators that are not in the payload are never touched.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;

use super::crd::{ClusterOperator, ClusterOperatorSpec, ClusterOperatorStatus, OperatorCondition};
use super::payload::Wanted;
use crate::controllers::kit::clock::whole_seconds;

/// The field manager, by which objects of this controller are recognized.
pub const FIELD_MANAGER: &str = "admit-clusteroperator";
/// The reason of conditions before the operator has reported.
pub const PRIMED: &str = "Primed";
/// How long an operator that has just created its ClusterOperator has for its first report.
pub const GRACE: Duration = Duration::from_mins(2);
/// The conditions that each ClusterOperator has.
pub const REQUIRED: [&str; 3] = ["Available", "Progressing", "Degraded"];

#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    Create,
    Prime,
    /// Another client created it so recently that its operator may be about to report.
    LookAgain(Duration),
    Leave,
}

#[must_use]
pub fn plan(live: Option<&ClusterOperator>, now: Timestamp) -> Step {
    let Some(live) = live else { return Step::Create };
    let ClusterOperatorStatus { conditions, versions, related_objects } = live.report();
    if !(conditions.is_empty() && versions.is_empty() && related_objects.is_empty()) {
        return Step::Leave;
    }
    let ours = live.managed_fields().iter().any(|entry| entry.manager.as_deref() == Some(FIELD_MANAGER));
    let created = live.creation_timestamp().map_or(now, |at| at.0);
    let age = Duration::try_from(now.duration_since(created)).unwrap_or_default();
    match GRACE.checked_sub(age) {
        Some(left) if !ours && !left.is_zero() => Step::LookAgain(left),
        Some(_) | None => Step::Prime,
    }
}

/// Creates the object without a status.
#[must_use]
pub fn object(wanted: &Wanted) -> ClusterOperator {
    let mut object = ClusterOperator::new(&wanted.name, ClusterOperatorSpec {});
    object.metadata.labels = Some(wanted.labels.clone()).filter(|labels| !labels.is_empty());
    object.metadata.annotations =
        Some(wanted.annotations.clone()).filter(|annotations| !annotations.is_empty());
    object
}

/// Creates the status before the operator has reported. It has no versions: those of the manifest are expected ones, and would make
/// an update look complete.
#[must_use]
pub fn status(wanted: &Wanted, now: Timestamp) -> ClusterOperatorStatus {
    let unknown = |type_: &str| OperatorCondition {
        type_: type_.to_owned(),
        status: "Unknown".to_owned(),
        last_transition_time: Time(whole_seconds(now)),
        reason: Some(PRIMED.to_owned()),
        message: Some("Waiting for the operator to report".to_owned()),
    };
    ClusterOperatorStatus {
        conditions: REQUIRED.map(unknown).to_vec(),
        versions: Vec::new(),
        related_objects: wanted.related.clone(),
    }
}
