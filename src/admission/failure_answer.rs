//! What is answered to requests that were not decided: malformed, late, too many, panicked over.
//!
//! | route | the uid is known | it is not |
//! |---|---|---|
//! | `/audit`, which never denies | allowed, with a warning | 503, a failed call, on which `failurePolicy: Ignore` has its say |
//! | every other | a denial, so that no failure policy is asked | the code of what went wrong |

use admit_apimachinery::status::{Reason, Status};

use super::review::{Answer, Decided, ReviewId, Unreadable};
use super::snapshot::Ask;
use crate::telemetry::Metrics;

/// Why requests are let through on the auditing route, as a label of metrics.
pub(super) const AUDITING: &str = "auditing_route";

/// Why a request was not decided.
#[derive(Clone, Debug)]
pub(super) struct FailureAnswer {
    pub(super) status: Status,
    /// As a label of metrics.
    pub(super) label: &'static str,
}

impl FailureAnswer {
    /// A request whose evaluation ended without a decision because of `why`.
    pub(super) fn of(label: &'static str, why: &str) -> Self {
        Self {
            status: Status::new(Reason::InternalError, format!("the policies could not be evaluated: {why}")),
            label,
        }
    }

    /// A review that cannot be read.
    pub(super) fn malformed(unreadable: &Unreadable) -> Self {
        Self {
            status: Status::new(
                Reason::BadRequest,
                format!("the AdmissionReview is malformed: {}", unreadable.why),
            ),
            label: "malformed",
        }
    }

    pub(super) fn overloaded() -> Self {
        Self {
            status: Status::new(Reason::TooManyRequests, "too many requests at once, please try again later"),
            label: "overloaded",
        }
    }

    /// The answer of the route that was asked to the review with this id, where it is known whose the review is.
    pub(super) fn answer(&self, ask: &Ask, id: Option<&ReviewId>, metrics: &Metrics) -> Decided {
        let Self { status, label } = self;
        let answer = match (id, ask) {
            (Some(id), Ask::Auditing) => {
                metrics.let_through(AUDITING);
                Answer::let_through(id, &status.message)
            }
            (Some(id), _) => Answer::denied(id, status),
            // Not the code of what went wrong: callers try again after 429 for as long as they wait.
            (None, Ask::Auditing) => Answer::plain(&Status::new(Reason::ServiceUnavailable, &status.message)),
            (None, _) => Answer::plain(status),
        };
        Decided { answer, label }
    }
}
