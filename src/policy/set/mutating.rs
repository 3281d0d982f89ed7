//! Holds the mutating policies of a set, and runs them.

use std::collections::HashMap;
use std::sync::Arc;

use crate::deadline::{Deadline, Interrupted};
use crate::exception::Excepting;
use crate::matching::{self, Matched};
use crate::report::options::EvalOptions;
use crate::request::host::Host;
use crate::request::{Operation, Request};
use crate::set::index::{Candidate, Certainty, PolicyIndex};
use crate::set::{EXEMPT, PolicySet};
use crate::vap::{self, Binding, Missed, Mutated, MutatingPolicy, Pass, Reinvocation, Schemas};

/// Policies with their bindings, in order of name, and an index of those that have any.
#[derive(Debug, Default)]
pub(crate) struct Mutating {
    policies: Vec<(Arc<MutatingPolicy>, Arc<Vec<Binding>>)>,
    index: PolicyIndex,
}

impl Mutating {
    /// `policies`, each with those of `bindings` that name it.
    pub(crate) fn new(mut policies: Vec<MutatingPolicy>, mut bindings: Vec<Binding>) -> Self {
        policies.sort_by(|a, b| a.common().name.cmp(&b.common().name));
        bindings.sort_by(|a, b| a.name.cmp(&b.name));
        let mut by_policy: HashMap<String, Vec<Binding>> = HashMap::new();
        for binding in bindings {
            by_policy.entry(binding.policy_name.clone()).or_default().push(binding);
        }
        let bound = |policy: MutatingPolicy| {
            let bindings = by_policy.remove(&*policy.common().name).unwrap_or_default();
            (Arc::new(policy), Arc::new(bindings))
        };
        Self::of(policies.into_iter().map(bound).collect())
    }

    fn of(policies: Vec<(Arc<MutatingPolicy>, Arc<Vec<Binding>>)>) -> Self {
        let index = PolicyIndex::of(
            policies.iter().map(|(policy, bindings)| (!bindings.is_empty()).then_some(policy.common())),
        );
        Self { policies, index }
    }

    /// The same with `policy` in the place of the one of its name.
    pub(super) fn with(&self, policy: MutatingPolicy) -> Self {
        let (policy, mut policies) = (Arc::new(policy), self.policies.clone());
        let same = policies.iter_mut().filter(|(known, _)| known.common().name == policy.common().name);
        same.for_each(|(known, _)| *known = Arc::clone(&policy));
        Self::of(policies)
    }

    /// The same with `binding` in the place of the one of its name.
    pub(super) fn rebound(&self, binding: &Binding) -> Self {
        let mut policies = self.policies.clone();
        let of = policies.iter_mut().map(|(policy, bindings)| (&*policy.common().name, bindings));
        super::replace::rebind(of, binding);
        Self::of(policies)
    }
}

impl PolicySet {
    /// The same set with `policies` that change objects, each with those of `bindings` that name it.
    /// [`MutatingPolicy`] has an example.
    #[must_use]
    pub fn mutating(mut self, policies: Vec<MutatingPolicy>, bindings: Vec<Binding>) -> Self {
        self.mutating = Arc::new(Mutating::new(policies, bindings));
        self
    }

    /// The policies that change objects, in order of name, each with its bindings.
    /// [`MutatingPolicy`] has an example.
    pub fn mutating_policies(&self) -> impl Iterator<Item = (&MutatingPolicy, &[Binding])> {
        self.mutating.policies.iter().map(|(policy, bindings)| (&**policy, bindings.as_slice()))
    }

    /// Runs the mutating policies on the object of `request`, once. If `reinvocation` [is wanted](Reinvocation::is_wanted) then, all
    /// mutating plugins and webhooks run a second time, on the result.
    ///
    /// Deletions are not mutated. [`MutatingPolicy`] has an example.
    pub fn mutate(
        &self,
        request: &Request<'_>,
        (host, schemas): (&dyn Host, &dyn Schemas),
        reinvocation: &mut Reinvocation,
        eval: EvalOptions<'_>,
    ) -> Mutated {
        self.mutate_only(request, (host, schemas), reinvocation, eval, &|_| true)
    }

    /// Returns why mutating policies selected by `accept` did not apply to `request` in its original form.
    pub(crate) fn missed_by_mutating(
        &self,
        request: &Request<'_>,
        host: &dyn Host,
        accept: impl Fn(&str) -> bool,
    ) -> Vec<Missed> {
        let asked = self.mutating_policies().filter(|(policy, _)| accept(&policy.common().name));
        let whole = if matching::is_exempt(&request.kind) {
            EXEMPT
        } else if request.operation == Operation::Delete {
            "nothing is changed of what goes away"
        } else {
            return asked
                .flat_map(|(policy, bindings)| vap::missed(policy.common(), bindings, request, host))
                .collect();
        };
        asked.map(|(policy, _)| Missed::of_any(&policy.common().name, whole)).collect()
    }

    fn mutate_only(
        &self,
        request: &Request<'_>,
        (host, schemas): (&dyn Host, &dyn Schemas),
        reinvocation: &mut Reinvocation,
        eval: EvalOptions<'_>,
        accept: &dyn Fn(&str) -> bool,
    ) -> Mutated {
        if matching::is_exempt(&request.kind) || request.operation == Operation::Delete {
            return Mutated::default();
        }
        let overdue = || eval.deadline.is_some_and(Deadline::has_passed);
        let found = self.mutating.index.candidates(request, host).into_iter();
        let candidates: Vec<_> = found
            .filter_map(|Candidate { position, certainty }| {
                let (policy, bindings) = self.mutating.policies.get(position)?;
                if !accept(&policy.common().name) {
                    return None;
                }
                let matched = match certainty {
                    Certainty::Matches => Ok(Some(Matched::as_it_is(request))),
                    Certainty::Open if overdue() => Err(Interrupted.into()),
                    Certainty::Open => policy.common().constraints.matches(request, host),
                };
                Some((&**policy, bindings.as_slice(), matched))
            })
            .collect();
        let excepting = &Excepting::new(&self.exceptions, request, host);
        let pass = Pass { request, host, schemas, eval, excepting };
        vap::mutate(&pass, &candidates, reinvocation)
    }

    /// Runs those that `accept` names, a second time where that is wanted. [`MutatingPolicy`] has an example.
    pub fn mutate_fully(
        &self,
        request: &Request<'_>,
        around: (&dyn Host, &dyn Schemas),
        eval: EvalOptions<'_>,
        accept: impl Fn(&str) -> bool,
    ) -> Mutated {
        let mut reinvocation = Reinvocation::default();
        let first = self.mutate_only(request, around, &mut reinvocation, eval, &accept);
        if first.denial.is_some() || !reinvocation.is_wanted() {
            return first;
        }
        reinvocation.begin_second();
        let Mutated { object, mut outcomes, .. } = first;
        let request = Request { object: object.clone().map(Into::into), ..request.clone() };
        let second = self.mutate_only(&request, around, &mut reinvocation, eval, &accept);
        outcomes.extend(second.outcomes);
        Mutated { object: second.object.or(object), denial: second.denial, outcomes }
    }
}
