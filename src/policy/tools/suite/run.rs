//! Runs one test case against a set: builds the request, decides it by CRD and policies, and compares with what is
//! expected.

use std::sync::Arc;

use admit_apimachinery::field_error::FieldError;
use admit_apimachinery::status::StatusCause;
use serde_json::Value;

use super::expect::{Answer, Told};
use super::{Case, Mismatch, Outcome, builtin, target};
use crate::crd::Write;
use crate::read::object::Object;
use crate::report::decision::{Decision, Enforcement, PolicyOutcome, Reason, RuleOutcome, Verdict};
use crate::report::recording::Recording;
use crate::request::{GroupVersionKind, Operation, Request};
use crate::set::PolicySet;
use crate::set::builtins::Builtins;
use crate::set::documents::Documents;
use crate::set::known::KnownKinds;
use crate::vap::{Missed, Mutated};

/// The result of a case.
///
/// [`run_recorded`] has an example.
#[derive(Debug, Default)]
pub struct CaseResult {
    pub outcome: Outcome,
    /// The message of the rule that decided; empty when there is none.
    pub message: String,
    /// The field that a CRD complains about, or the rule's path in its policy.
    pub field: String,
    /// The policy whose rule decided; none where a CRD did.
    pub policy: Option<String>,
    /// Why policies in force were not asked; only where the case is recorded.
    pub missed: Vec<Missed>,
    /// Empty for a passed case.
    pub mismatches: Vec<Mismatch>,
    /// Notes on the result for the reader.
    pub notes: Vec<String>,
    /// Whether the server itself refused the object, which the case does not expect: its policies were not asked, and
    /// the message is the server's.
    pub refused: bool,
}

impl CaseResult {
    pub fn passed(&self) -> bool {
        self.mismatches.is_empty()
    }
}

/// Runs `case` against `set`.
///
/// ```
/// use admit_policy::suite::{self, Outcome, Suite};
/// use admit_policy::{LoadOptions, PolicySet};
/// use serde_json::json;
///
/// let policies = "
/// apiVersion: admissionregistration.k8s.io/v1
/// kind: ValidatingAdmissionPolicy
/// metadata: {name: named}
/// spec:
///   matchConstraints:
///     resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
///   validations: [{expression: object.metadata.name != 'x', message: not x}]
/// ---
/// apiVersion: admissionregistration.k8s.io/v1
/// kind: ValidatingAdmissionPolicyBinding
/// metadata: {name: named}
/// spec: {policyName: named, validationActions: [Deny]}
/// ";
/// let set = PolicySet::load_files([("policies.yaml", policies)], LoadOptions::default()).unwrap();
/// let suite = Suite::decode(&json!({
///     "apiVersion": "admit/v1",
///     "kind": "Suite",
///     "cases": [{
///         "name": "x is refused",
///         "object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "shop"}},
///         "expect": {"outcome": "deny", "message": "not x"},
///     }],
/// }))?;
/// let result = suite::run(&suite.cases[0], &set);
/// assert_eq!(result.outcome, Outcome::Deny);
/// assert!(result.mismatches.is_empty());
/// # Ok::<(), admit_policy::FieldsError>(())
/// ```
pub fn run(case: &Case, set: &PolicySet) -> CaseResult {
    run_with(case, set, None)
}

/// Like [`run`], and adds every evaluation to `recording`.
///
/// ```
/// use admit_policy::suite::{Suite, run_recorded};
/// use admit_policy::{Keep, PolicySet, Recording};
/// use serde_json::json;
///
/// let suite = Suite::decode(&json!({
///     "apiVersion": "admit/v1",
///     "kind": "Suite",
///     "cases": [{"name": "a", "object": {"apiVersion": "example.com/v1", "kind": "Cat"}, "expect": {"outcome": "allow"}}],
/// }))?;
/// let (set, recording) = (PolicySet::new(Vec::new(), Vec::new()), Recording::new(Keep::COVERAGE));
/// let result = run_recorded(&suite.cases[0], &set, &recording);
/// assert!(!result.passed(), "no policy matched");
/// assert!(recording.finish().is_empty());
/// # Ok::<(), admit_policy::FieldsError>(())
/// ```
pub fn run_recorded(case: &Case, set: &PolicySet, recording: &Recording) -> CaseResult {
    run_with(case, set, Some(recording))
}

fn run_with(case: &Case, set: &PolicySet, recording: Option<&Recording>) -> CaseResult {
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
    let request = request(case, &host);
    host.ensure_namespace(&request.namespace);
    let answer = answer(case, request, (set, &host), recording);
    let mismatches = case.expect.mismatches(&answer);
    let (message, field) = answer.first();
    let mut result = CaseResult {
        outcome: answer.outcome.unwrap_or(Outcome::Unmatched),
        message,
        field,
        mismatches,
        policy: answer.policy,
        missed: answer.missed,
        notes: Vec::new(),
        refused: false,
    };
    if let Some(refusal) = answer.refusal.filter(|_| !result.passed()) {
        // Nothing was decided about what the case is about.
        result = CaseResult { outcome: Outcome::Error, message: refusal, refused: true, ..result };
    }
    result
}

fn answer(
    case: &Case,
    mut request: Request<'_>,
    (set, host): (&PolicySet, &Documents),
    recording: Option<&Recording>,
) -> Answer {
    // Where a case names policies, passing the CRD alone is not what it is about.
    let by_crd = case.policies.is_empty();
    let in_force = |name: &str| case.policies.is_empty() || case.policies.iter().any(|policy| policy == name);
    let mut sent = taken(&mut request, host, recording);
    let mut missed = match recording {
        Some(_) => set.missed_by_mutating(&request, host, in_force),
        None => Vec::new(),
    };
    let mutated = mutated(&request, (set, host), recording, &in_force);
    if mutated.denial.is_some() && !sent.as_ref().is_err_and(|refused| refused.is_final) {
        let decision = Decision { denial: mutated.denial, outcomes: mutated.outcomes, ..Decision::default() };
        return of_decision(&decision, false);
    }
    if let Some(object) = mutated.object
        && !sent.as_ref().is_err_and(|refused| refused.is_final)
    {
        request.object = Some(object.into());
        sent = taken(&mut request, host, recording);
    }
    let checked = match sent {
        Ok(validated) => validated && by_crd,
        Err(refused) => return refused.answer,
    };
    let mut decision = set.decide_with(&request, host, in_force, recording.into());
    decision.outcomes.splice(0..0, mutated.outcomes);
    if recording.is_some() {
        missed.extend(set.missed(&request, host, in_force));
    }
    let object = request.object.as_ref().map(|object| object.value().into_owned());
    let again = case.expect.idempotent.then(|| {
        let mut again = request.clone();
        if let Some(object) = self::mutated(&request, (set, host), None, &in_force).object {
            again.object = Some(object.into());
            // Both are compared as a server reads them; what it would refuse then is seen all the same.
            taken(&mut again, host, None).ok();
        }
        again.object.map(|object| object.value().into_owned())
    });
    Answer { missed, object, again: again.flatten(), ..of_decision(&decision, checked) }
}

/// Does to the object what a server does when it has read it, as far as its kind is known. True when it was validated by
/// its definition.
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

/// What policies make of the object.
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
    let text = |pointer: &str| subject.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
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
        name: text("/metadata/name").to_owned(),
        namespace,
        operation: case.operation,
        user: case.user.clone(),
        object: object.cloned().map(Object::from),
        old_object: old_object.cloned().map(Object::from),
        options: case.options.clone().map(Object::from),
        dry_run: case.dry_run,
    }
}

/// Does to a custom resource what the API server does before admission, and validates it. True when there was an
/// object to validate.
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

/// What a policy would deny for, if there was no exception.
fn let_through(outcome: &PolicyOutcome) -> Vec<(&str, Told)> {
    let Some(excepted) = outcome.excepted.as_ref().filter(|excepted| excepted.in_force) else {
        return Vec::new();
    };
    let told = |rule: &RuleOutcome| match &rule.verdict {
        Verdict::Failed { message, .. } | Verdict::Errored { message, denies: true } => Some(Told {
            message: format!("{message}; {excepted}"),
            field: rule.path.to_string(),
            cause: None,
        }),
        Verdict::Admitted | Verdict::Errored { denies: false, .. } => None,
    };
    outcome.rules.iter().filter_map(|rule| Some((&*outcome.policy, told(rule)?))).collect()
}

fn of_decision<'d>(decision: &'d Decision, checked: bool) -> Answer {
    let rules = || {
        let of = |outcome: &'d PolicyOutcome| outcome.rules.iter().map(|rule| (&*outcome.policy, rule));
        decision.outcomes.iter().flat_map(of)
    };
    let enforced = |action: Enforcement| rules().filter(move |(_, rule)| rule.enforced.contains(&action));
    let annotations =
        decision.audit_annotations.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    let mut answer =
        Answer { audited: enforced(Enforcement::Audit).next().is_some(), annotations, ..Answer::default() };
    // In the order in which one outcome hides another.
    let denied = enforced(Enforcement::Deny).next();
    // What is let through is told with why, whatever it was denied for.
    let is_let_through =
        |outcome: &&PolicyOutcome| outcome.excepted.as_ref().is_some_and(|excepted| excepted.in_force);
    let decided = decision.outcomes.iter().filter(|outcome| !is_let_through(outcome));
    let errored = decided
        .flat_map(|outcome| outcome.rules.iter().map(move |rule| (&*outcome.policy, rule)))
        .find(|(_, rule)| matches!(rule.verdict, Verdict::Errored { .. }));
    let told: Vec<(&str, &RuleOutcome)> = if let Some((policy, rule)) = denied {
        answer.outcome = Some(match rule.verdict {
            Verdict::Errored { .. } => Outcome::Error,
            Verdict::Failed { .. } | Verdict::Admitted => Outcome::Deny,
        });
        vec![(policy, rule)]
    } else if let Some(told) = errored {
        answer.outcome = Some(Outcome::Error);
        vec![told]
    } else if !decision.warnings.is_empty() {
        answer.outcome = Some(Outcome::Warn);
        enforced(Enforcement::Warn).collect()
    } else if answer.audited {
        answer.outcome = Some(Outcome::Audit);
        enforced(Enforcement::Audit).collect()
    } else {
        let reached = checked || rules().next().is_some();
        answer.outcome = Some(if reached { Outcome::Allow } else { Outcome::Unmatched });
        Vec::new()
    };
    for (policy, rule) in told {
        answer.policy.get_or_insert_with(|| policy.to_owned());
        let message = match &rule.verdict {
            Verdict::Failed { message, reason } => {
                answer.reason = Some(*reason);
                message.clone()
            }
            Verdict::Errored { message, .. } => message.clone(),
            Verdict::Admitted => continue,
        };
        answer.told.push(Told { message, field: rule.path.to_string(), cause: None });
    }
    if answer.outcome == Some(Outcome::Warn) {
        let let_through = decision.outcomes.iter().flat_map(let_through);
        for (policy, told) in let_through {
            answer.policy.get_or_insert_with(|| policy.to_owned());
            answer.told.push(told);
        }
    }
    answer
}
