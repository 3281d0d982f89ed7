//! Lists the kind of `apiextensions.k8s.io`. The resources that definitions define are served by `registry::crds`.
//!
//! Read from staging/src/k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition/strategy.go.

pub(crate) mod custom_resource_definition;

use super::Strategy;

pub(super) const KINDS: &[Strategy] = &[custom_resource_definition::STRATEGY];
