//! Processes the request of a test case up to the validating policies: builds it, defaults and validates it as a server does, and
//! applies mutating policies.

use std::sync::Arc;

use admit_apimachinery::field_error::FieldError;
use admit_apimachinery::pointer;
use admit_apimachinery::status::StatusCause;
use serde_json::Value;

use super::expect::{Answer, Told};
use super::{Case, Outcome, builtin, plugged, target};
use crate::crd::Write;
use crate::read::object::Object;
use crate::report::decision::{Decision, PolicyOutcome, Reason};
use crate::report::recording::Recording;
use crate::request::{GroupVersionKind, Operation, Request};
use crate::set::PolicySet;
use crate::set::builtins::Builtins;
use crate::set::documents::Documents;
use crate::set::known::KnownKinds;
use crate::tools::system_fields::with_system_fields;
use crate::vap::{Missed, Mutated};

/// How far the request of a case gets.
pub(super) enum Stage {
    /// The server rejects the object.
    Refused(Answer),
    /// A mutating policy denies it.
    Denied(Decision),
    /// It reaches the validating policies.
    Open(Box<Front>),
}

/// The input of the validating policies.
#[derive(Clone, Debug)]
pub(super) struct Front {
    /// The request after mutating policies.
    pub(super) request: Request<'static>,
    /// The same, with what a server adds then.
    pub(super) complete: Request<'static>,
    pub(super) host: Documents,
    /// The outcomes of mutating policies.
    pub(super) outcomes: Vec<PolicyOutcome>,
    /// Whether the definition validated the object, and the case is about that too.
    pub(super) checked: bool,
    /// Policies that did not apply; only where the case is recorded.
    pub(super) missed: Vec<Missed>,
    /// What the object names that no document has.
    pub(super) assumed: Vec<String>,
}

/// Whether a policy is in force for the case.
pub(super) fn in_force(case: &Case) -> impl Fn(&str) -> bool {
    |name: &str| case.policies.is_empty() || case.policies.iter().any(|policy| policy == name)
}

pub(super) fn stage(case: &Case, set: &PolicySet, recording: Option<&Recording>) -> Stage {
    let mut host = set.documents().clone();
    for object in &case.existing {
        host.insert(Arc::clone(object));
    }
    if let Some(answers) = &case.access {
        host.set_answers(Arc::clone(answers));
    }
    if let Some(now) = case.now {
        host.set_now(now);
    }
    let mut request = request(case, &host);
    host.ensure_namespace(&request.namespace);
    // If a case names policies, being valid by the CRD is not what it tests.
    let by_crd = case.policies.is_empty();
    let in_force = in_force(case);
    let mut sent = taken(&mut request, &host, recording);
    let mut assumed = Vec::new();
    if !sent.as_ref().is_err_and(|refused| refused.is_final) {
        match plugged::mutate(&mut request, &host, &mut assumed) {
            Err(answer) => return Stage::Refused(*answer),
            Ok(true) => sent = taken(&mut request, &host, recording),
            Ok(false) => {}
        }
    }
    let missed = match recording {
        Some(_) => set.missed_by_mutating(&request, &host, &in_force),
        None => Vec::new(),
    };
    let mutated = mutated(&request, (set, &host), recording, &in_force);
    if mutated.denial.is_some() && !sent.as_ref().is_err_and(|refused| refused.is_final) {
        return Stage::Denied(Decision {
            denial: mutated.denial,
            outcomes: mutated.outcomes,
            ..Decision::default()
        });
    }
    if let Some(object) = mutated.object
        && !sent.as_ref().is_err_and(|refused| refused.is_final)
    {
        request.object = Some(object.into());
        sent = taken(&mut request, &host, recording);
    }
    let checked = match sent {
        Ok(validated) => validated && by_crd,
        Err(refused) => return Stage::Refused(refused.answer),
    };
    let mut complete = request.clone();
    with_system_fields(&mut complete, &host, case.now);
    if let Err(answer) = plugged::validate(&complete, &host, &mut assumed) {
        return Stage::Refused(*answer);
    }
    let outcomes = mutated.outcomes;
    Stage::Open(Box::new(Front { request, complete, host, outcomes, checked, missed, assumed }))
}

/// The object after policies saw it once more that change objects.
pub(super) fn again(
    case: &Case,
    request: &Request<'static>,
    (set, host): (&PolicySet, &Documents),
) -> Option<Value> {
    let mut again = request.clone();
    if let Some(object) = mutated(request, (set, host), None, &in_force(case)).object {
        again.object = Some(object.into());
        // Both are compared after defaulting; the result is shown even if a server would then reject it.
        taken(&mut again, host, None).ok();
    }
    again.object.map(|object| object.value().into_owned())
}

/// Processes the object as a server does after decoding, as far as its kind is known. True if its definition validated it.
fn taken(
    request: &mut Request<'_>,
    host: &Documents,
    recording: Option<&Recording>,
) -> Result<bool, Box<builtin::Refused>> {
    let crd = host.crd_of(&request.kind).filter(|_| request.operation != Operation::Delete).cloned();
    let Some(crd) = crd else { return builtin::prepare(request, host).map(|()| false) };
    let Some(version) = crd.version(&request.kind.version) else {
        return builtin::prepare(request, host).map(|()| false);
    };
    let old = request.old_object.as_ref().map(|old| version.stored(&old.value()));
    let status = request.subresource == "status";
    let write = Write { crd: &crd, version, old: old.as_ref(), status, eval: recording.into() };
    let validated = write_resource(&write, request);
    request.old_object = old.map(Object::from);
    validated
}

/// Applies mutating policies to the object.
fn mutated(
    request: &Request<'_>,
    (set, host): (&PolicySet, &Documents),
    recording: Option<&Recording>,
    in_force: &dyn Fn(&str) -> bool,
) -> Mutated {
    let kinds =
        KnownKinds { documents: host, builtins: host.builtins().map(|builtins| builtins as &dyn Builtins) };
    set.mutate_fully(request, (host, &kinds), recording.into(), in_force)
}

/// The request that a case is about, as it is sent.
///
/// ```
/// use admit_policy::suite::{self, Suite};
/// use admit_policy::Documents;
/// use serde_json::json;
///
/// let suite = Suite::decode(&json!({
///     "apiVersion": "admit/v1",
///     "kind": "Suite",
///     "cases": [{"name": "a", "object": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}}, "expect": "allow"}],
/// }))?;
/// let request = suite::request(&suite.cases[0], &Documents::default());
/// assert_eq!((request.resource.resource.as_str(), request.name.as_str()), ("pods", "web"));
/// # Ok::<(), admit_policy::FieldsError>(())
/// ```
pub fn request(case: &Case, host: &Documents) -> Request<'static> {
    let subject = case.object.as_deref().or(case.old_object.as_deref()).unwrap_or(&Value::Null);
    let text = |pointer: &str| pointer::text(subject, pointer);
    let kind = GroupVersionKind::of(subject);
    let (resource, subresource) = target::resource(&kind, case.resource.as_deref(), &case.subresource, host);
    let namespace = case.namespace.clone().unwrap_or_else(|| match kind.kind.as_str() {
        "Namespace" if kind.group.is_empty() => text("/metadata/name").to_owned(),
        _ => text("/metadata/namespace").to_owned(),
    });
    let (object, old_object) = match case.operation {
        Operation::Delete => (None, case.old_object.as_ref().or(case.object.as_ref())),
        _ => (case.object.as_ref(), case.old_object.as_ref()),
    };
    Request {
        uid: "00000000-0000-0000-0000-000000000000".to_owned(),
        request_kind: kind.clone(),
        request_resource: resource.clone(),
        request_subresource: subresource.clone(),
        kind,
        resource,
        subresource,
        name: case.request_name.clone().unwrap_or_else(|| text("/metadata/name").to_owned()),
        namespace,
        operation: case.operation,
        user: case.user.clone(),
        object: object.cloned().map(Object::from),
        old_object: old_object.cloned().map(Object::from),
        options: case.options.clone().map(Object::from),
        dry_run: case.dry_run,
    }
}

/// Defaults, prunes and validates a custom resource as the API server does before admission. True if there was an object to validate.
fn write_resource(write: &Write<'_>, request: &mut Request<'_>) -> Result<bool, Box<builtin::Refused>> {
    let Some(new) = &request.object else { return Ok(false) };
    let written = write.decide(&new.value());
    request.object = Some(written.object.into());
    if written.errors.is_empty() {
        return Ok(true);
    }
    let answer = Answer {
        outcome: Some(Outcome::Deny),
        told: written.errors.iter().map(of_error).collect(),
        reason: Some(Reason::Invalid),
        ..Answer::default()
    };
    Err(Box::new(builtin::Refused { answer, is_final: false }))
}

fn of_error(error: &FieldError) -> Told {
    let StatusCause { message, field, .. } = error.cause();
    Told { message, field, cause: Some(error.kind) }
}
