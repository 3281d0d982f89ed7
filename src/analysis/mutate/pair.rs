//! Runs one case under both the original and the mutant, and compares the outcomes.

use admit_policy::suite::{self, Case, CaseResult, Outcome, Reached};
use admit_policy::{Decision, PolicySet};
use serde_json::{Map, Value, json};

use super::case;
use super::mutant::{Effect, Mutant};
use super::trial::{Changed, Probe};

/// A case that passes with the original and fails with the mutant.
#[derive(Clone, Debug, PartialEq)]
pub struct Killing {
    /// The case as written in a suite.
    pub case: Value,
    /// Its outcome with the original.
    pub outcome: Outcome,
    /// Its outcome with the mutant.
    pub changed: Outcome,
    /// The message with the mutant; empty if there is none.
    pub message: String,
}

/// The original and the mutated policy set.
pub(super) struct Pair<'s> {
    set: &'s PolicySet,
    other: PolicySet,
    /// The name of the mutated policy, if it is a validating one.
    policy: Option<&'s str>,
    effect: Effect,
}

/// Whether an evaluation error may be the expected outcome: only if nothing else distinguishes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Errors {
    Told,
    Passed,
}

impl<'s> Pair<'s> {
    pub(super) fn of(probe: &'s Probe<'_>, document: &Value, mutant: &Mutant) -> Option<Self> {
        let (set, policy) = probe.set()?;
        let other = Changed::of(set, document, mutant)?.set;
        Some(Self { set, other, policy, effect: mutant.effect })
    }

    /// Takes sets that contain the mutated document alone.
    pub(super) const fn new(set: &'s PolicySet, other: PolicySet) -> Self {
        Self { set, other, policy: None, effect: Effect::Verdict }
    }

    /// Returns the case with its expectation, if it passes with the original and fails with the mutant.
    pub(super) fn told(&self, mut written: Value, errors: Errors) -> Option<Killing> {
        let builtins = case::builtins(self.set);
        let asked = case::read(&written, &json!("allow"), builtins)?;
        let more = match self.policy {
            Some(policy) => Some(self.decided(&asked, policy)?),
            None => None,
        };
        let (before, after) = (suite::run(&asked, self.set), suite::run(&asked, &self.other));
        let is_verdict = |result: &CaseResult| {
            !result.refused && (errors == Errors::Told || result.outcome != Outcome::Error)
        };
        let more = more.or_else(|| self.made(&asked)).flatten();
        if !is_verdict(&before) || (more.is_none() && same(&before, &after)) {
            return None;
        }
        let mut expect = Map::from_iter([("outcome".to_owned(), json!(before.outcome.as_str()))]);
        for (key, value) in [("message", &before.message), ("field", &before.field)] {
            if !value.is_empty() {
                expect.insert(key.to_owned(), json!(value));
            }
        }
        expect.extend(more);
        let expect = Value::Object(expect);
        let expecting = case::read(&written, &expect, builtins)?;
        let holds =
            suite::run(&expecting, self.set).passed() && !suite::run(&expecting, &self.other).passed();
        if !holds {
            return None;
        }
        written.as_object_mut()?.insert("expect".to_owned(), expect);
        Some(Killing {
            case: written,
            outcome: before.outcome,
            changed: after.outcome,
            message: after.message,
        })
    }

    /// Compares the decisions of the mutated policy. The inner value is the audit annotation to expect, if only annotations differ;
    /// `None` if the decisions are equal, and so all outcomes are.
    fn decided(&self, asked: &Case, policy: &str) -> Option<Option<(String, Value)>> {
        let reached = Reached::new(asked, self.set)?;
        let decide = |set: &PolicySet| -> Decision { reached.decide(set, policy) };
        let (before, after) = (decide(self.set), decide(&self.other));
        if before == after {
            return None;
        }
        let has_more = self.effect == Effect::Said && before.audit_annotations != after.audit_annotations;
        Some(has_more.then(|| ("annotations".to_owned(), json!(before.audit_annotations))))
    }

    /// Compares the objects after mutating policies; `None` if they are equal.
    fn made(&self, asked: &Case) -> Option<Option<(String, Value)>> {
        if self.effect != Effect::Object {
            return None;
        }
        let (before, after) = (Reached::new(asked, self.set)?, Reached::new(asked, &self.other)?);
        let (before, after) = (before.object()?, after.object()?);
        (before != after).then(|| Some(("object".to_owned(), before)))
    }
}

fn same(a: &CaseResult, b: &CaseResult) -> bool {
    let told = |result: &CaseResult| {
        (result.outcome, result.message.clone(), result.field.clone(), result.policy.clone())
    };
    told(a) == told(b)
}
