//! Lists the kinds of `coordination.k8s.io`.
//!
//! Read from pkg/apis/coordination/validation/validation.go and pkg/registry/coordination/lease/strategy.go.

mod lease;

use super::Strategy;

pub(super) const KINDS: &[Strategy] = &[lease::STRATEGY];
