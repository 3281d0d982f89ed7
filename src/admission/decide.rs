//! Decides one request on a worker thread: evaluates it, counts and logs the decision, and writes the response.

use std::cell::Cell;
use std::time::Instant;

use admit_policy::patch::difference;
use admit_policy::{Decision, Enforcement, EvalOptions, KnownKinds, Mutated, RuleOutcome, Skipped, Verdict};

use super::converters::Converters;
use super::decisions::Decisions;
use super::failure_answer::{AUDITING, FailureAnswer};
use super::policy_host::{Cluster, PolicyHost};
use super::review::{Answer, Decided, Question};
use super::snapshot::{Ask, InForce};
use super::workers::Gone;
use super::{log, resource};
use crate::telemetry::Metrics;

/// How long a decision is useful.
pub(super) struct Patience<'p> {
    pub(super) until: Instant,
    /// Whether the caller has disconnected.
    pub(super) gone: &'p Gone<'p>,
}

/// Decides the request of `question` with the policies of `in_force` that `ask` names, within `patience`.
pub(super) fn decide(
    question: &Question<'_>,
    ask: &Ask,
    in_force: &InForce,
    (cluster, converters): (&Cluster, &Converters),
    patience: &Patience<'_>,
    (metrics, decisions): (&Metrics, Option<&Decisions>),
) -> Decided {
    let (request, id) = (&question.request, question.id());
    let late = |why| FailureAnswer::of("timeout", why).answer(ask, Some(&id), metrics);
    let Patience { until, gone } = *patience;
    let passed = || Instant::now() >= until || gone();
    if passed() {
        return late("its time was over before it began");
    }
    let spent = Cell::new(0);
    let deadline = admit_policy::Deadline::new(&passed);
    let documents = in_force.policies.documents();
    let checked = if ask.definitions() {
        resource::check(documents, request, deadline)
    } else {
        resource::Checked::default()
    };
    if checked.interrupted {
        return late("the time for it is over");
    }
    let host = PolicyHost { files: documents, in_force, cluster: cluster.as_deref(), converters, until };
    if *ask == Ask::Mutating {
        let kinds = KnownKinds { documents, builtins: documents.builtins() };
        let eval = EvalOptions { deadline: Some(deadline), spent: Some(&spent), ..EvalOptions::default() };
        let mutated = in_force.policies.mutate_fully(request, (&host, &kinds), eval, |_| true);
        metrics.cost(spent.get());
        return changed(question, mutated, (metrics, decisions));
    }
    let mut decision = match checked.denial {
        Some(denial) => Decision { denial: Some(denial), ..Decision::default() },
        None => in_force.policies.decide_with(
            request,
            &host,
            |name| ask.concerns(in_force, name),
            EvalOptions { deadline: Some(deadline), spent: Some(&spent), ..EvalOptions::default() },
        ),
    };
    decision.warnings.extend(checked.warnings);
    count(&decision, metrics);
    metrics.cost(spent.get());
    if *ask == Ask::Auditing {
        audit_only(&mut decision, metrics);
    }
    if let Some(denial) = &decision.denial {
        log::denial(request, &decision, denial);
    }
    if let Some(decisions) = decisions {
        decisions.note(request, &decision);
    }
    let label = if decision.allowed() { "allowed" } else { "denied" };
    Decided { answer: Answer::decided(&id, &decision), label }
}

/// Creates the response of the mutating policies.
fn changed(
    question: &Question<'_>,
    mutated: Mutated,
    (metrics, decisions): (&Metrics, Option<&Decisions>),
) -> Decided {
    let (request, id) = (&question.request, question.id());
    let (warnings, audit_annotations) = (mutated.warnings(), mutated.annotations().into_iter().collect());
    let Mutated { object, denial, outcomes } = mutated;
    let decision = Decision { denial, outcomes, warnings, audit_annotations };
    count(&decision, metrics);
    if let Some(denial) = &decision.denial {
        log::denial(request, &decision, denial);
        // Admitted requests are recorded when they are validated later.
        if let Some(decisions) = decisions {
            decisions.note(request, &decision);
        }
        return Decided { answer: Answer::decided(&id, &decision), label: "denied" };
    }
    let sent = request.object.as_ref().map(|object| object.value());
    let patch = object.zip(sent).and_then(|(object, sent)| difference(&sent, &object));
    Decided { answer: Answer::patched(&id, patch.as_ref(), &decision), label: "allowed" }
}

fn count(decision: &Decision, metrics: &Metrics) {
    let mut undecided = false;
    for outcome in &decision.outcomes {
        let skipped = match &outcome.skipped {
            Some(Skipped::Excepted(excepted)) => Some(excepted),
            Some(Skipped::False { .. } | Skipped::Failed { .. }) | None => None,
        };
        if outcome.excepted.as_ref().or(skipped).is_some_and(|excepted| excepted.in_force) {
            metrics.excepted(&outcome.policy);
        }
        for rule in &outcome.rules {
            let (action, word) = (action(rule), word(&rule.verdict));
            metrics.rule(&outcome.policy, action, word);
            undecided |= matches!(rule.verdict, Verdict::Errored { denies: false, .. });
        }
    }
    if undecided && decision.allowed() {
        metrics.let_through("failure_policy_ignore");
    }
}

/// Returns the most severe action of a binding for a rule's failure.
fn action(rule: &RuleOutcome) -> &'static str {
    let has = |action: Enforcement| rule.enforced.contains(&action);
    match () {
        () if has(Enforcement::Deny) => "deny",
        () if has(Enforcement::Warn) => "warn",
        () if has(Enforcement::Audit) => "audit",
        () => "none",
    }
}

const fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Admitted => "admitted",
        Verdict::Failed { .. } => "failed",
        Verdict::Errored { .. } => "errored",
    }
}

/// Turns a denial on the auditing route into a warning. Policies there cannot deny, except for objects that cannot be
/// converted.
fn audit_only(decision: &mut Decision, metrics: &Metrics) {
    if let Some(denial) = decision.denial.take() {
        decision.warnings.push(denial.message);
        metrics.let_through(AUDITING);
    }
}
