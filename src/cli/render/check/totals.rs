//! Counts objects by outcome, and for each policy how many objects it evaluated, denied, warned about or audited.

use std::collections::BTreeMap;
use std::sync::Arc;

use admit_policy::Enforcement;
use admit_policy::apply::Applied;

use super::Outcome;
use crate::cli::render::counted;

/// Counts of objects; its memory does not grow with their number.
#[derive(Debug, Default)]
pub(super) struct Totals {
    outcomes: [usize; Outcome::ALL.len()],
    policies: BTreeMap<Arc<str>, Enforced>,
    assuming: usize,
}

/// How many objects a policy evaluated, and what its bindings did.
#[derive(Clone, Copy, Debug, Default)]
struct Enforced {
    objects: usize,
    denied: usize,
    warned: usize,
    audited: usize,
}

/// A policy with its counts.
#[derive(Debug)]
pub(super) struct ByPolicy<'t> {
    pub(super) name: &'t str,
    pub(super) objects: usize,
    pub(super) denied: usize,
    pub(super) warned: usize,
    pub(super) audited: usize,
}

impl Totals {
    pub(super) fn add(&mut self, outcome: Outcome, applied: &Applied) {
        let counts = Outcome::ALL.iter().zip(&mut self.outcomes);
        counts.filter(|(of, _)| **of == outcome).for_each(|(_, count)| raise(count, true));
        raise(&mut self.assuming, !applied.assumed.is_empty());
        // A policy may be evaluated several times: for each of its bindings, and each of their params.
        let mut asked: BTreeMap<&Arc<str>, Vec<Enforcement>> = BTreeMap::new();
        for outcome in applied.outcomes.iter().filter(|outcome| !outcome.rules.is_empty()) {
            let enforced = outcome.rules.iter().flat_map(|rule| rule.enforced.iter().copied());
            asked.entry(&outcome.policy).or_default().extend(enforced);
        }
        for (policy, enforced) in asked {
            if !self.policies.contains_key(policy) {
                self.policies.insert(Arc::clone(policy), Enforced::default());
            }
            let Some(counts) = self.policies.get_mut(policy) else { continue };
            raise(&mut counts.objects, true);
            raise(&mut counts.denied, enforced.contains(&Enforcement::Deny));
            raise(&mut counts.warned, enforced.contains(&Enforcement::Warn));
            raise(&mut counts.audited, enforced.contains(&Enforcement::Audit));
        }
    }

    pub(super) fn count(&self, outcome: Outcome) -> usize {
        Outcome::ALL.iter().zip(self.outcomes).find(|(of, _)| **of == outcome).map_or(0, |(_, count)| count)
    }

    /// Returns how many objects refer to something unknown.
    pub(super) fn assuming(&self) -> usize {
        self.assuming
    }

    pub(super) fn objects(&self) -> usize {
        self.outcomes.iter().sum()
    }

    /// Returns the evaluated policies, sorted by denials.
    pub(super) fn policies(&self) -> Vec<ByPolicy<'_>> {
        let mut rows: Vec<ByPolicy<'_>> = self
            .policies
            .iter()
            .map(|(name, &Enforced { objects, denied, warned, audited })| ByPolicy {
                name,
                objects,
                denied,
                warned,
                audited,
            })
            .collect();
        rows.sort_by_key(|row| std::cmp::Reverse((row.denied, row.warned, row.audited)));
        rows
    }

    /// Returns a summary such as `3 objects: 1 allowed, 2 denied`.
    pub(super) fn sentence(&self) -> String {
        let told: Vec<String> = Outcome::ALL
            .into_iter()
            .map(|outcome| (self.count(outcome), outcome))
            .filter(|(count, _)| *count > 0)
            .map(|(count, outcome)| format!("{count} {}", outcome.counted()))
            .collect();
        let objects = counted(self.objects(), "object");
        if told.is_empty() { objects } else { format!("{objects}: {}", told.join(", ")) }
    }
}

fn raise(count: &mut usize, by_one: bool) {
    *count = count.saturating_add(usize::from(by_one));
}
