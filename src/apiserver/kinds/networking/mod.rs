//! The kinds of `networking.k8s.io`.

use super::Strategy;

pub(super) const KINDS: &[Strategy] = &[];
