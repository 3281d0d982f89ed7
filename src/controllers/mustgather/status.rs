//! Builds the status of a MustGather. Pure.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::crd::{MustGather, MustGatherStatus, Phase};
use super::fetch::Fetched;
use crate::controllers::kit::conditions::{self, Statement, Truth};

pub const SUCCESS: &str = "ReconcileSuccess";
pub const ERROR: &str = "ReconcileError";
/// Whether something that does not pass by itself keeps the Job's Pod from starting.
pub const STUCK: &str = "JobStuck";
/// As the helper library of upstream spells it, which others compare.
const SUCCEEDED: &str = "LastReconcileCycleSucceded";
const FAILED: &str = "LastReconcileCycleFailed";

/// The status that follows, where it says something new; `trouble` is what keeps it from going on.
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

/// The status of an object whose Job is under way, where it says something new.
pub(super) fn active(fetched: &Fetched, statement: Option<Statement>) -> Option<MustGatherStatus> {
    changed(&fetched.object, fetched.now, |status| {
        // That it was created is said by who created it.
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

/// The status after a request was refused, which the server says in `message`; none where that is said already.
pub(super) fn refused(object: &MustGather, now: Timestamp, message: &str) -> Option<MustGatherStatus> {
    changed(object, now, |status| tell(status, object, now, Some(message)))
}

/// Says whether the last look at the object went well.
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
