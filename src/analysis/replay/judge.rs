//! Decides one request with one folder of policies: definitions, then mutating policies, then validating ones. A policy that needs
//! unknown data is reported as undecided; all others still decide.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use admit_policy::crd::{CompiledCrd, Write, Written};
use admit_policy::matching::is_exempt;
use admit_policy::{
    Decision, Enforcement, EvalOptions, KnownKinds, Object, Operation, PolicyOutcome, Request, Skipped,
    Verdict,
};
use serde_json::Value;

use super::host::Surroundings;
use super::needs::{Concern, Side, Sight, Unknown};
use super::report::{Cause, Effect};

/// Replaces a message that may contain a value of a Secret.
pub(crate) const WITHHELD: &str =
    "(not shown: the message is computed, and the request or the params are Secrets)";

/// A request to decide.
#[derive(Debug)]
pub(super) struct Case<'c, 'd> {
    pub(super) request: &'c Request<'d>,
    pub(super) unknown: Unknown,
    /// The request's Namespace, if the log or a dump contains it.
    pub(super) namespace: Option<Arc<Value>>,
    /// The time of the request, if recorded.
    pub(super) time: Option<SystemTime>,
}

/// The result of a request.
#[derive(Debug, Default)]
pub(super) struct Judged {
    /// The most severe effect of each policy that has one, with its message.
    pub(super) effects: BTreeMap<String, (Effect, String)>,
    pub(super) denied: bool,
    /// Why some policy could not be evaluated.
    pub(super) undecided: Option<Cause>,
    /// Whether any policy or definition applied.
    pub(super) matched: bool,
}

impl Judged {
    fn undecide(&mut self, cause: Cause) {
        self.matched = true;
        self.undecided.get_or_insert(cause);
    }

    fn add(&mut self, policy: &str, effect: Effect, message: String) {
        let known = self.effects.get(policy);
        if known.is_none_or(|(known, _)| *known < effect) {
            self.effects.insert(policy.to_owned(), (effect, message));
        }
    }
}

/// Decides `case` with the policies of `side`.
pub(super) fn judge(side: &Side<'_>, case: &Case<'_, '_>) -> Judged {
    let mut judged = Judged::default();
    if is_exempt(&case.request.kind) {
        return judged;
    }
    let mut request = case.request.clone();
    if by_definition(side, case, &mut request, &mut judged) {
        return judged;
    }
    let namespace = case.namespace.clone().map(|namespace| (case.request.namespace.as_str(), namespace));
    let host = Surroundings::new(side.set.documents(), namespace, side.knows_access, case.time);
    let concern = Concern {
        operation: request.operation,
        resource: &case.request.resource,
        subresource: &case.request.subresource,
    };
    let mutating = able(side.mutating(concern), &case.unknown, &mut judged);
    if !mutating.is_empty() && by_mutation(side, &host, &mutating, &mut request, &mut judged) {
        return judged;
    }
    let validating = able(side.validating(concern), &case.unknown, &mut judged);
    by_validation(side, &host, &validating, &request, &mut judged);
    judged
}

/// Selects the policies that read nothing unknown.
fn able<'t>(sights: Vec<&'t Sight>, unknown: &Unknown, judged: &mut Judged) -> Vec<&'t Sight> {
    let able = |sight: &&Sight| match sight.hindered(unknown) {
        Some(cause) => {
            judged.undecide(cause);
            false
        }
        None => true,
    };
    sights.into_iter().filter(able).collect()
}

/// Applies a custom resource's definition (defaults, pruning, validation); returns whether it rejects the object.
fn by_definition(
    side: &Side<'_>,
    case: &Case<'_, '_>,
    request: &mut Request<'_>,
    judged: &mut Judged,
) -> bool {
    if !matches!(request.operation, Operation::Create | Operation::Update)
        || !matches!(request.subresource.as_str(), "" | "status")
    {
        return false;
    }
    let Some(crd) = side.set.documents().crd_of(&request.kind) else { return false };
    judged.matched = true;
    let old = case.unknown.old_object.filter(|_| request.operation == Operation::Update);
    if let Some(cause) = case.unknown.object.or(old) {
        judged.undecide(cause);
        return false;
    }
    let Some(written) = written(crd, request) else {
        judged.undecide(Cause::Kind);
        return false;
    };
    if let Some(message) = written.refusal(crd) {
        let name = format!("CustomResourceDefinition {}", crd.definition().name);
        judged.add(&name, Effect::Deny, message);
        judged.denied = true;
        return true;
    }
    request.object = Some(Object::from(written.object));
    false
}

fn written(crd: &CompiledCrd, request: &mut Request<'_>) -> Option<Written> {
    let version = crd.version(&request.kind.version)?;
    let old = request.old_object.as_ref().map(|old| version.stored(&old.value()));
    let status = request.subresource == "status";
    let write = Write { crd, version, old: old.as_ref(), status, eval: EvalOptions::default() };
    let written = write.decide(&request.object.as_ref()?.value());
    request.old_object = old.map(Object::from);
    Some(written)
}

/// Applies mutating policies; returns whether they, or the definition of the mutated object, deny it.
fn by_mutation(
    side: &Side<'_>,
    host: &Surroundings<'_>,
    sights: &[&Sight],
    request: &mut Request<'_>,
    judged: &mut Judged,
) -> bool {
    let documents = side.set.documents();
    let kinds = KnownKinds { documents, builtins: documents.builtins().map(|known| known as _) };
    let accept = |name: &str| sights.iter().any(|sight| &*sight.name == name);
    let mutated = side.set.mutate_fully(request, (host, &kinds), EvalOptions::default(), accept);
    if let Some(cause) = host.asked_in_vain() {
        judged.undecide(cause);
        return false;
    }
    note(side, sights, request, &mutated.outcomes, judged);
    if mutated.denial.is_some() {
        judged.denied = true;
        return true;
    }
    let Some(object) = mutated.object else { return false };
    request.object = Some(Object::from(object));
    let crd = documents.crd_of(&request.kind).filter(|_| request.subresource.is_empty());
    let refusal = crd.and_then(|crd| {
        let written = written(crd, request)?;
        let refusal = written.refusal(crd);
        request.object = Some(Object::from(written.object));
        refusal.map(|message| (format!("CustomResourceDefinition {}", crd.definition().name), message))
    });
    let Some((name, message)) = refusal else { return false };
    judged.add(&name, Effect::Deny, message);
    judged.denied = true;
    true
}

fn by_validation(
    side: &Side<'_>,
    host: &Surroundings<'_>,
    sights: &[&Sight],
    request: &Request<'_>,
    judged: &mut Judged,
) {
    if sights.is_empty() {
        return;
    }
    let decide = |accepted: &[&Sight]| {
        let accept = |name: &str| accepted.iter().any(|sight| &*sight.name == name);
        side.set.decide_with(request, host, accept, EvalOptions::default())
    };
    let decision = decide(sights);
    if host.asked_in_vain().is_none() {
        return taken(side, sights, request, &decision, judged);
    }
    // Evaluates each alone to see which of them needs unknown data.
    for sight in sights {
        let decision = decide(&[sight]);
        match host.asked_in_vain() {
            Some(cause) => judged.undecide(cause),
            None => taken(side, sights, request, &decision, judged),
        }
    }
}

fn taken(
    side: &Side<'_>,
    sights: &[&Sight],
    request: &Request<'_>,
    decision: &Decision,
    judged: &mut Judged,
) {
    note(side, sights, request, &decision.outcomes, judged);
    judged.denied |= decision.denial.is_some();
}

/// Adds the effects of policies to the result.
fn note(
    side: &Side<'_>,
    sights: &[&Sight],
    request: &Request<'_>,
    outcomes: &[PolicyOutcome],
    judged: &mut Judged,
) {
    let resource = &request.resource;
    let is_secret =
        resource.group.is_empty() && resource.resource == "secrets" || request.subresource == "token";
    for outcome in outcomes {
        judged.matched = true;
        let params = sights.iter().any(|sight| sight.name == outcome.policy && sight.secret_params);
        let told = |message: &str| match (is_secret || params) && !side.is_fixed(message) {
            true => WITHHELD.to_owned(),
            false => message.to_owned(),
        };
        match &outcome.skipped {
            Some(Skipped::Failed { message }) => {
                judged.add(&outcome.policy, Effect::Error, told(message));
            }
            Some(Skipped::Excepted(excepted)) => {
                judged.add(&outcome.policy, Effect::Excepted, excepted.to_string());
            }
            Some(Skipped::False { .. }) | None => {}
        }
        for rule in &outcome.rules {
            let (denies, warns) =
                (rule.enforced.contains(&Enforcement::Deny), rule.enforced.contains(&Enforcement::Warn));
            let let_through = outcome.excepted.as_ref().filter(|excepted| excepted.in_force).is_some();
            let (effect, message) = match &rule.verdict {
                Verdict::Admitted => continue,
                Verdict::Failed { message, .. } | Verdict::Errored { message, denies: true }
                    if let_through =>
                {
                    (Effect::Excepted, message)
                }
                Verdict::Errored { message, .. } if denies => (Effect::DenyOnError, message),
                Verdict::Errored { message, .. } => (Effect::Error, message),
                Verdict::Failed { message, .. } if denies => (Effect::Deny, message),
                Verdict::Failed { message, .. } if warns => (Effect::Warn, message),
                Verdict::Failed { .. } if rule.enforced.is_empty() => continue,
                Verdict::Failed { message, .. } => (Effect::Audit, message),
            };
            let message = match outcome.excepted.as_ref().filter(|_| denies || let_through) {
                Some(excepted) => format!("{}; {excepted}", told(message)),
                None => told(message),
            };
            judged.add(&outcome.policy, effect, message);
        }
    }
}
