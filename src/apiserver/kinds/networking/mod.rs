//! Lists the kinds of `networking.k8s.io`.
//!
//! Read from pkg/apis/networking/validation/validation.go and pkg/registry/networking/*/strategy.go.

mod ingress;
mod ingress_class;
mod ip_address;
mod network_policy;
mod service_cidr;

use super::Strategy;

pub(super) const KINDS: &[Strategy] = &[
    ingress::STRATEGY,
    ingress_class::STRATEGY,
    ip_address::STRATEGY,
    network_policy::STRATEGY,
    service_cidr::STRATEGY,
];
