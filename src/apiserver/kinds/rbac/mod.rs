//! The kinds of `rbac.authorization.k8s.io`.
//!
//! Read from pkg/apis/rbac/validation/validation.go and pkg/apis/rbac/v1/defaults.go.

mod binding;
mod role;

use admit_apimachinery::names::NameRule;
use serde_json::Value;

use super::Strategy;

pub(super) const KINDS: &[Strategy] =
    &[role::ROLE, role::CLUSTER_ROLE, binding::ROLE_BINDING, binding::CLUSTER_ROLE_BINDING];

/// Names of roles and of bindings need only be one segment of a path.
fn name(_: &Value, name: &str, is_prefix: bool) -> Vec<String> {
    NameRule::PathSegment.problems(name, is_prefix)
}
