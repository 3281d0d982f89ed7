//! Evaluates stored admission policies for every write, compiling them and their bindings when they change.

use std::sync::{Arc, PoisonError, RwLock};

use admit_policy::{
    Binding, Deadline, Decision, Enforcement, EvalOptions, Host, MutatingPolicy, Policy, PolicySet,
    Reinvocation, Verdict,
};
use serde_json::{Value, json};

use super::policy_keys::{BINDINGS, MUTATING_BINDING_KEY, MUTATING_POLICY_KEY, POLICIES};
use super::review::{Operation, Review};
use super::{Cluster, from_files};
use crate::metrics::AdmissionMetrics;
use crate::objects::Objects;
use crate::status::Refusal;
use crate::store::{Kept, StoreError};
use crate::{interrupt, object};

#[derive(Debug, Default)]
pub(crate) struct Policies {
    compiled: RwLock<Option<Arc<PolicySet>>>,
}

impl Policies {
    /// Drops the compiled policies after a change; the next write compiles them again.
    pub(crate) fn forget(&self) {
        *self.compiled.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Copies the policies for another cluster; they are compiled anew unless the copy is `current`.
    pub(super) fn fork(&self, current: bool) -> Self {
        let compiled = self.compiled.read().unwrap_or_else(PoisonError::into_inner);
        Self { compiled: RwLock::new(compiled.clone().filter(|_| current)) }
    }

    /// Evaluates the validating policies, if there are any.
    pub(super) fn decide(
        &self,
        cluster: &dyn Cluster,
        review: &Review<'_>,
    ) -> Result<Option<Decision>, Refusal> {
        let set = self.current(cluster)?;
        if set.policies().next().is_none() {
            return Ok(None);
        }
        let deadline = Some(Deadline::new(&interrupt::is_over));
        let eval = EvalOptions { deadline, ..EvalOptions::default() };
        let decision = set.decide_with(&review.request()?, &review.host(cluster), |_| true, eval);
        // Ends here if the request's time is over: its answer has been sent.
        interrupt::checkpoint();
        Ok(Some(decision))
    }

    /// Carries out what the policies decided, and counts it.
    pub(super) fn settle(
        decision: Option<Decision>,
        review: &Review<'_>,
        metrics: &AdmissionMetrics,
    ) -> Result<(), Refusal> {
        let Some(decision) = decision else { return Ok(()) };
        count(&decision, metrics);
        if !decision.audit_annotations.is_empty() {
            tracing::debug!(annotations = %json!(decision.audit_annotations), "audit annotations");
            review.call.warnings.annotate(decision.audit_annotations);
        }
        for warning in decision.warnings {
            review.call.warnings.add(warning);
        }
        match decision.denial {
            None => Ok(()),
            Some(denial) => Err(denial.status.into()),
        }
    }

    /// Applies the mutating policies; returns the object if one of them changes it.
    pub(super) async fn mutate(
        &self,
        cluster: &dyn Cluster,
        review: &Review<'_>,
        again: &mut Reinvocation,
    ) -> Result<Option<Value>, Refusal> {
        let set = self.current(cluster)?;
        if review.operation == Operation::Delete || set.mutating_policies().next().is_none() {
            return Ok(None);
        }
        // The run is repeated from the start if an object must be converted first.
        let run = || {
            let mut again = again.clone();
            let deadline = Some(Deadline::new(&interrupt::is_over));
            let eval = EvalOptions { deadline, ..EvalOptions::default() };
            let request = review.request()?;
            let around = (&review.host(cluster) as &dyn Host, cluster.schemas());
            let mutated = set.mutate(&request, around, &mut again, eval);
            interrupt::checkpoint();
            Ok::<_, Refusal>((mutated, again))
        };
        let (mutated, state) = review.call.conversions.provide(cluster, run).await?;
        *again = state;
        match mutated.denial {
            None => Ok(mutated.object),
            Some(denial) => Err(denial.status.into()),
        }
    }

    /// Returns the compiled policies. Without the list of them no write is admitted.
    fn current(&self, objects: &dyn Objects) -> Result<Arc<PolicySet>, Refusal> {
        if let Some(set) = &*self.compiled.read().unwrap_or_else(PoisonError::into_inner) {
            return Ok(Arc::clone(set));
        }
        // The lock is held while compiling, so that a concurrent change is not overwritten by older policies.
        let mut compiled = self.compiled.write().unwrap_or_else(PoisonError::into_inner);
        let set = Arc::new(
            admit_policy::unasked(|| compile(objects))
                .map_err(|error| Refusal::internal(error.to_string()))?,
        );
        *compiled = Some(Arc::clone(&set));
        Ok(set)
    }
}

/// Counts the rules that failed, once for each action.
fn count(decision: &Decision, metrics: &AdmissionMetrics) {
    for outcome in &decision.outcomes {
        let Some(binding) = &outcome.binding else { continue };
        for rule in &outcome.rules {
            if let Verdict::Errored { denies: false, .. } = rule.verdict {
                metrics.checked(&outcome.policy, binding, "allow");
            }
            for action in &rule.enforced {
                let action = match action {
                    Enforcement::Deny => "deny",
                    Enforcement::Warn => "warn",
                    Enforcement::Audit => "audit",
                };
                metrics.checked(&outcome.policy, binding, action);
            }
        }
    }
}

fn compile(objects: &dyn Objects) -> Result<PolicySet, StoreError> {
    let (policies, bindings) =
        from_files::decided_here(stored(objects, POLICIES)?, stored(objects, BINDINGS)?);
    let (mutating, mutating_bindings) = from_files::decided_here(
        stored(objects, MUTATING_POLICY_KEY)?,
        stored(objects, MUTATING_BINDING_KEY)?,
    );
    let set = PolicySet::new(
        policies.iter().filter_map(|policy| known(policy, Policy::compile_stored(policy))).collect(),
        bindings.iter().filter_map(|binding| known(binding, Binding::compile(binding))).collect(),
    )
    .mutating(
        mutating.iter().filter_map(|policy| known(policy, MutatingPolicy::compile_stored(policy))).collect(),
        mutating_bindings
            .iter()
            .filter_map(|binding| known(binding, Binding::compile_mutating(binding)))
            .collect(),
    );
    Ok(set)
}

/// Drops a stored document that does not compile, which was accepted by older rules, and logs it.
fn known<T, E>(document: &Value, compiled: Result<T, Vec<E>>) -> Option<T> {
    compiled
        .map_err(|errors| {
            let name = object::name(document);
            tracing::error!(policy = name, errors = errors.len(), "a stored policy does not compile");
        })
        .ok()
}

fn stored(objects: &dyn Objects, storage_key: &str) -> Result<Vec<Arc<Value>>, StoreError> {
    let mut items: Vec<Kept> = Vec::new();
    objects.each_object(storage_key, None, &mut |kept| items.push(kept.clone()))?;
    Ok(items.iter().map(|kept| kept.object.values()).collect())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::resources::{ResourceTable, builtin_rows};
    use crate::store::{Key, Stored};

    /// A cluster whose objects cannot be listed.
    #[derive(Debug)]
    pub(in crate::admission) struct Unlisted;

    impl Objects for Unlisted {
        fn object(&self, _: &Key) -> Option<Kept> {
            None
        }

        fn latest_object(&self, _: &Key) -> Option<Stored> {
            None
        }

        fn each_object(&self, _: &str, _: Option<&str>, _: &mut dyn FnMut(&Kept)) -> Result<(), StoreError> {
            Err(StoreError::Compacted { compacted: 7 })
        }

        fn resources(&self) -> Arc<ResourceTable> {
            Arc::new(ResourceTable::new(builtin_rows(), 1))
        }
    }

    #[test]
    fn without_the_list_of_policies_no_write_is_admitted() {
        let policies = Policies::default();
        for _ in 0..2 {
            let refusal = policies.current(&Unlisted).unwrap_err();
            assert_eq!(refusal.code(), 500, "{refusal:?}");
        }
    }
}
