//! Lists the kinds of `scheduling.k8s.io`.

mod priority_class;

use super::Strategy;

pub(super) const KINDS: &[Strategy] = &[priority_class::STRATEGY];
