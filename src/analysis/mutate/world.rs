//! Evaluates the cases of a policy set up to the point where a mutation could first matter, so that mutants share that work.

use std::collections::HashSet;
use std::sync::OnceLock;

use admit_policy::suite::{self, Case, Reached};
use admit_policy::{ExpressionId, GroupVersionKind, Keep, Origin, PolicySet, Recording};
use serde_json::Value;

use super::case::Seed;

/// A policy set with its cases, each evaluated up to the validating policies.
///
/// [`Trial`](super::Trial) has an example.
#[derive(Debug)]
pub struct World<'a> {
    pub(super) set: &'a PolicySet,
    cases: Vec<Entry<'a>>,
}

#[derive(Debug)]
pub(super) struct Entry<'a> {
    pub(super) case: &'a Case,
    /// The state before validating policies run; `None` if the case ends earlier.
    pub(super) reached: Option<Reached<'a>>,
    pub(super) seed: Seed,
    /// The rules of definitions that it evaluates; computed on demand.
    rules: OnceLock<HashSet<ExpressionId>>,
}

impl<'a> World<'a> {
    /// Takes the `cases` of `set`. Leave out cases that fail already: they detect nothing.
    #[must_use]
    pub fn new(set: &'a PolicySet, cases: impl IntoIterator<Item = (&'a Case, Seed)>) -> Self {
        let entry = |(case, seed): (&'a Case, Seed)| Entry {
            case,
            reached: Reached::new(case, set),
            seed,
            rules: OnceLock::new(),
        };
        Self { set, cases: cases.into_iter().map(entry).collect() }
    }

    /// Returns the cases in which a policy applies.
    pub(super) fn asking<'s>(&'s self, policy: &'s str) -> impl Iterator<Item = &'s Entry<'a>> {
        let asks =
            move |case: &Case| case.policies.is_empty() || case.policies.iter().any(|name| name == policy);
        self.cases.iter().filter(move |entry| asks(entry.case))
    }

    /// Returns the cases about a definition. A case that names policies is not about its definition.
    pub(super) fn about(&self, definition: &Value) -> impl Iterator<Item = &Entry<'a>> {
        let text = |pointer: &str| {
            definition.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let (group, kind) = (text("/spec/group"), text("/spec/names/kind"));
        let is_about = move |case: &Case| {
            let objects = [case.object.as_deref(), case.old_object.as_deref()];
            objects.into_iter().flatten().any(|object| {
                let own = GroupVersionKind::of(object);
                own.group == group && own.kind == kind
            })
        };
        self.cases.iter().filter(move |entry| entry.case.policies.is_empty() && is_about(entry.case))
    }
}

impl Entry<'_> {
    /// Reports whether the case evaluates a rule of a definition.
    pub(super) fn evaluates(&self, set: &PolicySet, rule: &ExpressionId) -> bool {
        let rules = self.rules.get_or_init(|| {
            let recording = Recording::new(Keep::COVERAGE);
            suite::run_recorded(self.case, set, &recording);
            let evaluated = recording.finish().into_keys();
            evaluated.filter(|id| matches!(id.origin, Origin::Definition { .. })).collect()
        });
        rules.contains(rule)
    }
}
