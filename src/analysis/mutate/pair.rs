//! One case under both: what it comes to as the rules are, and with a change.

use admit_policy::suite::{self, Case, CaseResult, Outcome, Reached};
use admit_policy::{Decision, PolicySet};
use serde_json::{Map, Value, json};

use super::case;
use super::mutant::{Effect, Mutant};
use super::trial::{Changed, Probe};

/// A case that passes as the rules are, and fails with the change.
#[derive(Clone, Debug, PartialEq)]
pub struct Killing {
    /// As it is written in a suite.
    pub case: Value,
    /// What comes of it as the rules are.
    pub outcome: Outcome,
    /// What comes of it with the change.
    pub changed: Outcome,
    /// What is said with the change, if anything.
    pub message: String,
}

/// What both sets say of requests.
pub(super) struct Pair<'s> {
    set: &'s PolicySet,
    other: PolicySet,
    /// The policy that differs, if it is one that validates.
    policy: Option<&'s str>,
    effect: Effect,
}

/// Whether a rule that fails is a verdict to expect: where nothing else tells.
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

    /// Of two documents that are alone.
    pub(super) const fn new(set: &'s PolicySet, other: PolicySet) -> Self {
        Self { set, other, policy: None, effect: Effect::Verdict }
    }

    /// The case with what is expected of it, if it passes as the rules are and fails with the change.
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

    /// What the policy that differs decides otherwise in both: annotations that are to be expected, if it is they. None where it
    /// decides the same, and so all do.
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

    /// What policies that change objects make of the object, if the change makes something else of it.
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
