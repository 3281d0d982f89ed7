//! Runs one test case against a set: builds the request, decides it by CRD and policies, and compares with what is
//! expected.

use serde_json::Value;

use super::expect::{Answer, Told};
use super::reach::{self, Front, Stage};
use super::{Case, Mismatch, Outcome, plugged};
use crate::report::decision::{Decision, Enforcement, PolicyOutcome, RuleOutcome, Skipped, Verdict};
use crate::report::recording::Recording;
use crate::set::PolicySet;
use crate::vap::Missed;

/// The result of a case.
///
/// [`run_recorded`] has an example.
#[derive(Debug, Default)]
pub struct CaseResult {
    pub outcome: Outcome,
    /// The message of the rule that decided; empty if there is none.
    pub message: String,
    /// The field that a CRD complains about, or the rule's path in its policy.
    pub field: String,
    /// The policy whose rule decided; None where a CRD did.
    pub policy: Option<String>,
    /// Why policies did not apply; only where the case is recorded.
    pub missed: Vec<Missed>,
    /// Empty for a passed case.
    pub mismatches: Vec<Mismatch>,
    /// Notes on the result for the reader.
    pub notes: Vec<String>,
    /// Whether the server itself rejected the object, which the case does not expect: policies did not run, and the message is the
    /// server's.
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
    match reach::stage(case, set, recording) {
        Stage::Refused(answer) => judged(case, answer),
        Stage::Denied(decision) => judged(case, of_decision(&decision, false)),
        Stage::Open(front) => judged(case, front.answer(case, set, recording)),
    }
}

/// A case processed up to the validating policies, for callers that evaluate it with several sets that differ only in such policies or
/// their bindings.
///
/// ```
/// use admit_policy::suite::{Reached, Suite, run};
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
/// let other = PolicySet::load_files([("others.yaml", &*policies.replace("'x'", "'y'"))], LoadOptions::default()).unwrap();
/// let suite = Suite::decode(&json!({
///     "apiVersion": "admit/v1",
///     "kind": "Suite",
///     "cases": [{
///         "name": "x is refused",
///         "object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "shop"}},
///         "expect": "deny",
///     }],
/// }))?;
/// let reached = Reached::new(&suite.cases[0], &set).unwrap();
/// assert_eq!(reached.case().name, "x is refused");
/// assert_eq!(reached.object().unwrap()["metadata"]["name"], "x");
/// assert!(reached.run(&set).passed() && !reached.run(&other).passed());
/// assert_eq!(reached.run(&other).passed(), run(&suite.cases[0], &other).passed());
/// assert_ne!(reached.decide(&set, "named"), reached.decide(&other, "named"));
/// # Ok::<(), admit_policy::FieldsError>(())
/// ```
#[derive(Debug)]
pub struct Reached<'c> {
    case: &'c Case,
    front: Front,
}

impl<'c> Reached<'c> {
    /// Returns None if the case ends before validating policies run.
    #[must_use]
    pub fn new(case: &'c Case, set: &PolicySet) -> Option<Self> {
        match reach::stage(case, set, None) {
            Stage::Open(front) => Some(Self { case, front: *front }),
            Stage::Refused(_) | Stage::Denied(_) => None,
        }
    }

    /// The case.
    #[must_use]
    pub const fn case(&self) -> &'c Case {
        self.case
    }

    /// Returns the object after mutating policies; None for a deletion.
    #[must_use]
    pub fn object(&self) -> Option<Value> {
        self.front.request.object.as_ref().map(|object| object.value().into_owned())
    }

    /// The same as [`run`].
    #[must_use]
    pub fn run(&self, set: &PolicySet) -> CaseResult {
        judged(self.case, self.front.clone().answer(self.case, set, None))
    }

    /// What one policy of `set` alone decides. Where two sets differ in this policy only, and it decides the same in both, the
    /// case has the same result in both.
    #[must_use]
    pub fn decide(&self, set: &PolicySet, policy: &str) -> Decision {
        let Front { complete, host, .. } = &self.front;
        set.decide_only(complete, host, |name| name == policy)
    }
}

/// Compares the answer with what the case expects.
fn judged(case: &Case, answer: Answer) -> CaseResult {
    let mismatches = case.expect.mismatches(&answer);
    let (message, field) = answer.first();
    let mut result = CaseResult {
        outcome: answer.outcome.unwrap_or(Outcome::Unmatched),
        message,
        field,
        mismatches,
        policy: answer.policy,
        missed: answer.missed,
        notes: answer.assumed.iter().map(|named| format!("{named} is taken as being there")).collect(),
        refused: false,
    };
    if let Some(refusal) = answer.refusal.filter(|_| !result.passed()) {
        // What the case tests was never evaluated.
        result = CaseResult { outcome: Outcome::Error, message: refusal, refused: true, ..result };
    }
    result
}

impl Front {
    /// Evaluates the validating policies.
    fn answer(self, case: &Case, set: &PolicySet, recording: Option<&Recording>) -> Answer {
        let Self { request, complete, host, outcomes, checked, mut missed, assumed } = self;
        let in_force = reach::in_force(case);
        let mut decision = set.decide_with(&complete, &host, &in_force, recording.into());
        decision.outcomes.splice(0..0, outcomes);
        if recording.is_some() {
            missed.extend(set.missed(&complete, &host, &in_force));
        }
        if decision.denial.is_none()
            && let Some(answer) = plugged::charge(&complete, &host)
        {
            return Answer { assumed, ..answer };
        }
        let object = request.object.as_ref().map(|object| object.value().into_owned());
        let again = case.expect.idempotent.then(|| reach::again(case, &request, (set, &host)));
        Answer { missed, object, again: again.flatten(), assumed, ..of_decision(&decision, checked) }
    }
}

/// What a policy would deny for, if there was no exception.
fn let_through(outcome: &PolicyOutcome) -> Vec<(&str, Told)> {
    if let Some(Skipped::Excepted(excepted)) = &outcome.skipped {
        let told = Told { message: excepted.to_string(), field: String::new(), cause: None };
        return vec![(&outcome.policy, told)];
    }
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

/// Whether the request passes a policy by that changes objects.
fn passes_by(outcome: &PolicyOutcome) -> bool {
    matches!(outcome.skipped, Some(Skipped::Excepted(_)))
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
    // In order of precedence of outcomes.
    let denied = enforced(Enforcement::Deny).next();
    // For an admitted request the reason is reported, whatever it would be denied for.
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
    } else if !decision.warnings.is_empty() || decision.outcomes.iter().any(passes_by) {
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
