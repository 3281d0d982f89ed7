//! Lists the kinds of `autoscaling` (pkg/apis/autoscaling/validation and pkg/registry/autoscaling).

mod horizontal_pod_autoscaler;
mod metrics;
mod target;

use super::Strategy;

pub(super) const KINDS: &[Strategy] = &[horizontal_pod_autoscaler::STRATEGY];
