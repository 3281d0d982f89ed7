//! The kinds of `rbac.authorization.k8s.io`.
//!
//! Read from pkg/apis/rbac/validation/validation.go and pkg/apis/rbac/v1/defaults.go.

mod binding;
mod role;

use super::Strategy;

pub(super) const KINDS: &[Strategy] =
    &[role::ROLE, role::CLUSTER_ROLE, binding::ROLE_BINDING, binding::CLUSTER_ROLE_BINDING];
