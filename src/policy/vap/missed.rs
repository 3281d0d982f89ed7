//! Explains to users why policies did not apply to a request. Has no effect on decisions.

use super::binding::Binding;
use super::params;
use super::policy::Policy;
use crate::matching::Miss;
use crate::request::Request;
use crate::request::host::Host;

/// A policy that did not apply, or not through one of its bindings.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Missed {
    pub policy: String,
    /// The binding; absent where the policy itself does not match, or has no binding.
    pub binding: Option<String>,
    /// The field that excludes the request: of the binding if there is one, else of the policy; empty for a policy without bindings.
    pub field: String,
    pub reason: String,
}

impl Missed {
    /// Builds the entry of a policy that never applies.
    pub(crate) fn of_any(policy: &str, reason: &str) -> Self {
        Self { policy: policy.to_owned(), binding: None, field: String::new(), reason: reason.to_owned() }
    }
}

/// Returns why `policy` did not apply to `request`, one entry per reason; empty where it did, or where matching failed, which is an
/// outcome of its own.
pub(crate) fn missed(
    policy: &Policy,
    bindings: &[Binding],
    request: &Request<'_>,
    host: &dyn Host,
) -> Vec<Missed> {
    let of_policy =
        |Miss { field, reason }| Missed { policy: policy.name.to_string(), binding: None, field, reason };
    let own = policy.constraints.misses(request, host, "spec.matchConstraints");
    if !own.is_empty() {
        return own.into_iter().map(of_policy).collect();
    }
    if bindings.is_empty() {
        let kind = if policy.is_mutating { "Mutating" } else { "Validating" };
        let reason = format!("no {kind}AdmissionPolicyBinding names it");
        return vec![of_policy(Miss { field: String::new(), reason })];
    }
    let of_binding = |binding: &Binding| {
        let named = |Miss { field, reason }| Missed {
            policy: policy.name.to_string(),
            binding: Some(binding.name.to_string()),
            field,
            reason,
        };
        binding_misses(policy, binding, request, host).into_iter().map(named).collect::<Vec<_>>()
    };
    bindings.iter().flat_map(of_binding).collect()
}

fn binding_misses(policy: &Policy, binding: &Binding, request: &Request<'_>, host: &dyn Host) -> Vec<Miss> {
    if let Some(resources) = &binding.match_resources {
        let misses = resources.misses(request, host, "spec.matchResources");
        if !misses.is_empty() {
            return misses;
        }
    }
    let Some(kind) = &policy.param_kind else { return Vec::new() };
    let params = params::collect(policy, binding, host.param_scope(kind), request, host);
    if params.is_ok_and(|params| params.is_empty()) {
        let reason = format!("there is no {} that it names, and parameterNotFoundAction is Allow", kind.kind);
        return vec![Miss { field: "spec.paramRef".to_owned(), reason }];
    }
    Vec::new()
}
