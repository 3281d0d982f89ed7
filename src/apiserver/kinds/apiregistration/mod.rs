//! Lists the kinds of `apiregistration.k8s.io`.
//!
//! Read from staging/src/k8s.io/kube-aggregator/pkg/apis/apiregistration/validation/validation.go and
//! pkg/registry/apiservice/strategy.go there.

mod api_service;

use super::Strategy;

pub(super) const KINDS: &[Strategy] = &[api_service::STRATEGY];
