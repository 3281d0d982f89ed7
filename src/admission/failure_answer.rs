//! Creates the responses to requests that were not decided: malformed, late, too many, panics.
//!
//! | route | the uid is known | it is not |
//! |---|---|---|
//! | `/audit`, which never denies | allowed, with a warning | 503, a failed call, on which `failurePolicy: Ignore` has its say |
//! | every other | a denial, so that no failure policy is asked | the code of what went wrong |

use admit_apimachinery::status::{Reason, Status};

use super::review::{Answer, Decided, ReviewId, Unreadable};
use super::snapshot::Ask;
use crate::telemetry::Metrics;

/// The reason in metrics for requests that are admitted on the auditing route.
pub(super) const AUDITING: &str = "auditing_route";

/// Why a request was not decided.
#[derive(Clone, Debug)]
pub(super) struct FailureAnswer {
    pub(super) status: Status,
    /// The reason in metrics labels.
    pub(super) label: &'static str,
}

impl FailureAnswer {
    /// Creates the failure of a request whose evaluation ended without a decision because of `why`.
    pub(super) fn of(label: &'static str, why: &str) -> Self {
        Self {
            status: Status::new(Reason::InternalError, format!("the policies could not be evaluated: {why}")),
            label,
        }
    }

    /// Creates the failure for a review that cannot be parsed.
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

    /// Returns the response on this route to the review with this id, if the id is known.
    pub(super) fn answer(&self, ask: &Ask, id: Option<&ReviewId>, metrics: &Metrics) -> Decided {
        let Self { status, label } = self;
        let answer = match (id, ask) {
            (Some(id), Ask::Auditing) => {
                metrics.let_through(AUDITING);
                Answer::let_through(id, &status.message)
            }
            (Some(id), _) => Answer::denied(id, status),
            // Not the status of the failure: callers retry after 429 until their timeout.
            (None, Ask::Auditing) => Answer::plain(&Status::new(Reason::ServiceUnavailable, &status.message)),
            (None, _) => Answer::plain(status),
        };
        Decided { answer, label }
    }
}
