//! Lists the kinds of `certificates.k8s.io`.
//!
//! Read from pkg/apis/certificates/validation/validation.go and pkg/registry/certificates/certificates/strategy.go.

mod request;
mod signature;

use super::Strategy;

pub(super) const KINDS: &[Strategy] = &[request::STRATEGY];
