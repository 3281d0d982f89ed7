//! Lists the kinds of `discovery.k8s.io`.
//!
//! Read from pkg/apis/discovery/validation/validation.go and pkg/registry/discovery/endpointslice/strategy.go.

mod endpoint_slice;

use super::Strategy;

pub(super) const KINDS: &[Strategy] = &[endpoint_slice::STRATEGY];
