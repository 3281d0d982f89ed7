//! Classifies the recorded outcome of a request: admitted, denied by a replayed kind of policy, or refused by something else.

use super::event::Event;
use super::report::Refused;

/// The recorded outcome of a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Outcome {
    Admitted,
    /// Denied by a ValidatingAdmissionPolicy, or by a webhook that enforces them.
    Denied,
    /// Rejected by the validation of the kind; that of definitions is replayed.
    Invalid,
    Refused(Refused),
    /// The event does not record it.
    Untold,
}

/// The start of every denial message of such a policy, also within that of a webhook.
const POLICY: &str = "ValidatingAdmissionPolicy '";

pub(super) fn of(event: &Event<'_>) -> Outcome {
    let status = event.response_status.as_ref();
    let Some(code) = status.and_then(|status| status.code) else { return Outcome::Untold };
    let message = status.and_then(|status| status.message.as_deref()).unwrap_or_default();
    let forbids = event.annotation("authorization.k8s.io/decision") == Some("forbid");
    match code {
        0..=399 => Outcome::Admitted,
        401 if !message.contains(POLICY) => Outcome::Refused(Refused::Authentication),
        403 if forbids => Outcome::Refused(Refused::Authorization),
        400..=499 if message.contains(POLICY) => Outcome::Denied,
        _ if message.starts_with("admission webhook ") => Outcome::Refused(Refused::Admission),
        403 => Outcome::Refused(Refused::Admission),
        422 => Outcome::Invalid,
        400 | 406 | 413 | 415 => Outcome::Refused(Refused::Validation),
        404 | 409 | 410 => Outcome::Refused(Refused::Conflict),
        429 => Outcome::Refused(Refused::TooManyRequests),
        500.. => Outcome::Refused(Refused::Server),
        401..=499 => Outcome::Refused(Refused::Other),
    }
}
