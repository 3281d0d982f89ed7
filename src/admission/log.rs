//! Logs one line per denial: the user, the object and the rule. It has only the names of objects, and messages of
//! rules without recognisable secrets.

use admit_policy::{Decision, Denial, Enforcement, Request};

pub(super) use crate::telemetry::escaped as shown;
use crate::telemetry::{Outside, Secrets};

/// The longest message in characters; the response has all of it.
const MAX_MESSAGE: usize = 1_024;
const HIDDEN: &str = "[redacted]";

pub(super) fn denial(request: &Request<'_>, decision: &Decision, denial: &Denial) {
    let (policy, binding, rule) = rule_of(decision).unwrap_or_default();
    tracing::info!(
        uid = %shown(&request.uid),
        operation = %request.operation,
        resource = %shown(&request.resource.group_resource()),
        subresource = %shown(&request.subresource),
        namespace = %shown(&request.namespace),
        name = %shown(&request.name),
        user = %shown(&request.user.username),
        dry_run = request.dry_run,
        policy,
        binding,
        rule,
        code = denial.status.code,
        why = %message(request, denial),
        "denied"
    );
}

/// Returns policy, binding and path of the first rule that denied; None if a CRD did.
fn rule_of(decision: &Decision) -> Option<(&str, &str, String)> {
    decision.outcomes.iter().find_map(|outcome| {
        let rule = outcome.rules.iter().find(|rule| rule.enforced.contains(&Enforcement::Deny))?;
        Some((&*outcome.policy, outcome.binding.as_deref().unwrap_or_default(), rule.path.to_string()))
    })
}

/// Returns the message for the log. A rule about a Secret may quote it, so such messages are hidden.
pub(super) fn message(request: &Request<'_>, denial: &Denial) -> String {
    if request.kind.group.is_empty() && request.kind.kind == "Secret" {
        return HIDDEN.to_owned();
    }
    Outside::at_most(MAX_MESSAGE, &denial.message, &Secrets::default()).into_string()
}
