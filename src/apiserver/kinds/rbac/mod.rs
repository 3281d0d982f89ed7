//! Lists the kinds of `rbac.authorization.k8s.io`.
//!
//! Read from pkg/apis/rbac/validation/validation.go and pkg/apis/rbac/v1/defaults.go.

mod binding;
mod role;

use admit_apimachinery::names::NameRule;

use super::{Naming, Strategy};

pub(super) const KINDS: &[Strategy] =
    &[role::ROLE, role::CLUSTER_ROLE, binding::ROLE_BINDING, binding::CLUSTER_ROLE_BINDING];

/// Names of roles and bindings need only be a valid path segment.
const NAMING: Naming = Naming::Rule(NameRule::PathSegment);
