//! Determines which policies may deny: those that have a binding with Deny, and those that may fail to be evaluated.

use super::binding::Binding;
use super::policy::{FailurePolicy, Policy};
use crate::matching::MatchResources;
use crate::report::decision::Enforcement;

impl Policy {
    /// Whether requests may be denied on behalf of this policy with `bindings`.
    ///
    /// The actions of a binding are about what validations find, errors of their expressions and of match conditions
    /// included. What keeps a policy from being asked at all denies whatever the actions are, unless the policy ignores
    /// failures: params that are missing or of no known kind, a Namespace that cannot be looked at, audit annotations that
    /// cannot be made (apiserver `pkg/admission/plugin/policy/validating/dispatcher.go`, `addConfigError`).
    ///
    /// Objects that cannot be converted would belong to these, too. They are left out: any policy may meet one, and within
    /// an API server's own versions nothing fails to convert.
    #[must_use]
    pub fn may_deny(&self, bindings: &[Binding]) -> bool {
        let denies = |binding: &Binding| binding.actions.contains(&Enforcement::Deny);
        !bindings.is_empty() && (bindings.iter().any(denies) || self.may_not_apply(bindings))
    }

    fn may_not_apply(&self, bindings: &[Binding]) -> bool {
        let looks_up = |resources: &MatchResources| !resources.namespace_selector.is_empty();
        match self.failure_policy {
            FailurePolicy::Ignore => false,
            FailurePolicy::Fail => {
                self.param_kind.is_some()
                    || self.uses_namespace()
                    || !self.audit_annotations.is_empty()
                    || looks_up(&self.constraints)
                    || bindings.iter().filter_map(|binding| binding.match_resources.as_ref()).any(looks_up)
            }
        }
    }
}
