//! Determines which policies may deny: those that have a binding with Deny, and those that may fail to be evaluated.

use super::binding::Binding;
use super::policy::{FailurePolicy, Policy};
use crate::matching::MatchResources;
use crate::report::decision::Enforcement;

impl Policy {
    /// Whether this policy with `bindings` may deny requests.
    ///
    /// The actions of a binding apply to failed validations, including errors of their expressions and of match conditions. An error
    /// before that denies whatever the actions are, unless failurePolicy is Ignore: missing params or an unknown param kind, a
    /// Namespace that cannot be read, audit annotations that cannot be computed (apiserver
    /// `pkg/admission/plugin/policy/validating/dispatcher.go`, `addConfigError`).
    ///
    /// Objects that cannot be converted would be such errors, too. They are left out: any policy may meet one, and among an API
    /// server's own versions every conversion succeeds.
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
