//! Builds the status of a MustGather. Pure.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::crd::{MustGather, MustGatherStatus, Phase};
use super::fetch::Fetched;
use crate::controllers::kit::conditions::{self, Statement, Truth};

pub const SUCCESS: &str = "ReconcileSuccess";
pub const ERROR: &str = "ReconcileError";
/// The condition that the Job's Pod cannot start, for a reason that is rarely temporary.
pub const STUCK: &str = "JobStuck";
/// The spelling of upstream's library, which other programs compare.
const SUCCEEDED: &str = "LastReconcileCycleSucceded";
const FAILED: &str = "LastReconcileCycleFailed";

/// Returns the next status if it differs; `trouble` is what blocks the object.
pub(super) fn next(
    fetched: &Fetched,
    phase: Phase,
    reason: &str,
    trouble: Option<&str>,
) -> Option<MustGatherStatus> {
    changed(&fetched.object, fetched.now, |status| {
        status.status = (phase != Phase::None).then_some(phase);
        status.reason = (!reason.is_empty()).then(|| reason.to_owned());
        status.completed = matches!(phase, Phase::Completed | Phase::Failed);
        tell(status, &fetched.object, fetched.now, trouble);
    })
}

/// Returns the status of an object with an active Job, if it differs.
pub(super) fn active(fetched: &Fetched, statement: Option<Statement>) -> Option<MustGatherStatus> {
    changed(&fetched.object, fetched.now, |status| {
        // The creation of the Job was reported by its creator.
        if status.status != Some(Phase::Running) {
            status.status = Some(Phase::Running);
            status.reason = Some("the Job is active".to_owned());
            status.completed = false;
        }
        tell(status, &fetched.object, fetched.now, None);
        if let Some(statement) = statement {
            let generation = fetched.object.metadata.generation;
            conditions::set(&mut status.conditions, statement, generation, fetched.now);
        }
    })
}

/// Returns the status after a rejected request with the server's `message`; None if it is unchanged.
pub(super) fn refused(object: &MustGather, now: Timestamp, message: &str) -> Option<MustGatherStatus> {
    changed(object, now, |status| tell(status, object, now, Some(message)))
}

/// Sets the conditions about the result of the last reconciliation.
fn tell(status: &mut MustGatherStatus, object: &MustGather, now: Timestamp, trouble: Option<&str>) {
    let statements = match trouble {
        None => [
            Statement::new(SUCCESS, Truth::True, SUCCEEDED, ""),
            Statement::new(ERROR, Truth::False, SUCCEEDED, ""),
        ],
        Some(trouble) => [
            Statement::new(SUCCESS, Truth::False, FAILED, trouble),
            Statement::new(ERROR, Truth::True, FAILED, trouble),
        ],
    };
    for statement in statements {
        conditions::set(&mut status.conditions, statement, object.metadata.generation, now);
    }
}

fn changed(
    object: &MustGather,
    now: Timestamp,
    change: impl FnOnce(&mut MustGatherStatus),
) -> Option<MustGatherStatus> {
    let before = object.status.clone().unwrap_or_default();
    let mut status = before.clone();
    change(&mut status);
    (status != before).then_some(MustGatherStatus { last_update: Some(Time(now)), ..status })
}
