//! Lists the kinds of `policy` (pkg/apis/policy/validation and pkg/registry/policy).

mod pod_disruption_budget;

use super::Strategy;

pub(super) const KINDS: &[Strategy] = &[pod_disruption_budget::STRATEGY];
