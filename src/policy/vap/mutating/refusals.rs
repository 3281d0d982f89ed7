//! Builds the error responses for mutations that fail.

use admit_apimachinery::status::StatusCause;

use crate::report::decision::{Denial, Reason, Status, StatusDetails};
use crate::request::{GroupVersionKind, Request};

/// 403 with the reason of the first error, and all of them as causes.
pub(super) fn denied(request: &Request<'_>, errors: &[(String, Option<Reason>)]) -> Option<Denial> {
    let (message, reason) = errors.first()?;
    let reason = reason.unwrap_or(Reason::Forbidden);
    let mut denial = Denial::new(request, message.clone(), reason);
    let causes = errors.iter().map(|(message, _)| StatusCause {
        reason: "".into(),
        message: message.clone(),
        field: String::new(),
    });
    if let Some(details) = &mut denial.status.details {
        details.causes = causes.collect();
    }
    denial.status.message.clone_from(message);
    denial.status.code = Reason::Forbidden.code();
    Some(denial)
}

/// A refusal that no failure policy covers.
pub(super) fn direct(status: Status) -> Denial {
    let reasons = [Reason::NotFound, Reason::ServiceUnavailable];
    let reason = reasons.into_iter().find(|reason| reason.as_str() == status.reason);
    Denial { message: status.message.clone(), reason: reason.unwrap_or(Reason::InternalError), status }
}

pub(super) fn internal(why: &str) -> Box<Status> {
    let message = format!("Internal error occurred: {why}");
    let cause = StatusCause { reason: "".into(), message: why.to_owned(), field: String::new() };
    let details = StatusDetails { causes: vec![cause], ..StatusDetails::default() };
    Box::new(Status::new(Reason::InternalError, message).with(details))
}

pub(super) fn unserved(kind: &GroupVersionKind) -> Box<Status> {
    let GroupVersionKind { group, version, kind } = kind;
    Box::new(Status::new(
        Reason::ServiceUnavailable,
        format!(
            "Resource kind {group}/{version}, Kind={kind} not found. There can be a delay between when \
             CustomResourceDefinitions are created and when they are available."
        ),
    ))
}

pub(super) fn no_namespace(name: &str) -> Box<Status> {
    let details =
        StatusDetails { name: name.to_owned(), kind: "namespaces".to_owned(), ..StatusDetails::default() };
    Box::new(Status::new(Reason::NotFound, format!("namespaces \"{name}\" not found")).with(details))
}
