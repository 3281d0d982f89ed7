//! Lists the kinds of `node.k8s.io`.

mod runtime_class;

use super::Strategy;

pub(super) const KINDS: &[Strategy] = &[runtime_class::STRATEGY];
