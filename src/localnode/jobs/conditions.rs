//! Sets the conditions of a Job, which report its end in two steps.

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{JobCondition, JobStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// Why a Job ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ending {
    pub(super) succeeded: bool,
    pub(super) reason: String,
    pub(super) message: String,
}

impl Ending {
    pub(super) fn completed() -> Self {
        Self {
            succeeded: true,
            reason: "CompletionsReached".to_owned(),
            message: "Reached expected number of succeeded pods".to_owned(),
        }
    }

    pub(super) fn failed(reason: &str, message: &str) -> Self {
        Self { succeeded: false, reason: reason.to_owned(), message: message.to_owned() }
    }

    /// Returns the ending that an earlier sync has decided.
    pub(super) fn decided(status: &JobStatus) -> Option<Self> {
        let of = |kind: &str, succeeded| {
            holding(status, kind).map(|condition| Self {
                succeeded,
                reason: condition.reason.clone().unwrap_or_default(),
                message: condition.message.clone().unwrap_or_default(),
            })
        };
        of("SuccessCriteriaMet", true).or_else(|| of("FailureTarget", false))
    }

    /// Returns the condition types for a decided end while Pods still have to terminate, and for the final end.
    fn kinds(&self) -> (&'static str, &'static str) {
        if self.succeeded { ("SuccessCriteriaMet", "Complete") } else { ("FailureTarget", "Failed") }
    }

    pub(super) fn announce(&self, status: &mut JobStatus, now: Timestamp) {
        set(status, (self.kinds().0, true), &self.reason, &self.message, now);
    }

    pub(super) fn conclude(&self, status: &mut JobStatus, now: Timestamp) {
        set(status, (self.kinds().1, true), &self.reason, &self.message, now);
        if self.succeeded {
            status.completion_time = Some(Time(now));
        }
    }
}

/// Returns the final condition of a Job that has ended.
pub(super) fn last_word(status: &JobStatus) -> Option<&JobCondition> {
    holding(status, "Complete").or_else(|| holding(status, "Failed"))
}

fn holding<'a>(status: &'a JobStatus, kind: &str) -> Option<&'a JobCondition> {
    let conditions = status.conditions.iter().flatten();
    conditions.into_iter().find(|condition| condition.type_ == kind && condition.status == "True")
}

/// Sets a condition; returns whether that changes anything. A missing condition is not added as false.
pub(super) fn set(
    status: &mut JobStatus,
    (kind, holds): (&str, bool),
    reason: &str,
    message: &str,
    now: Timestamp,
) -> bool {
    let wanted = if holds { "True" } else { "False" };
    let next = JobCondition {
        type_: kind.to_owned(),
        status: wanted.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_probe_time: Some(Time(now)),
        last_transition_time: Some(Time(now)),
    };
    let conditions = status.conditions.get_or_insert_default();
    match conditions.iter_mut().find(|condition| condition.type_ == kind) {
        Some(condition) if condition.status == wanted => false,
        Some(condition) => {
            *condition = next;
            true
        }
        None if !holds => false,
        None => {
            conditions.push(next);
            true
        }
    }
}
