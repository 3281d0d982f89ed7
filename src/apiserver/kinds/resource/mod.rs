//! Lists the kinds of `resource.k8s.io`: devices, and claims to them.

mod admin_access;
mod allocation;
mod claim_spec;
mod device;
mod device_class;
mod device_taints;
mod resource_claim;
mod resource_claim_template;
mod resource_slice;
mod texts;

use super::Strategy;

pub(super) const KINDS: &[Strategy] = &[
    device_class::STRATEGY,
    resource_claim::STRATEGY,
    resource_claim_template::STRATEGY,
    resource_slice::STRATEGY,
];
