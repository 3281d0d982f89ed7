//! The kinds of the core group (pkg/apis/core/validation and pkg/registry/core).

mod endpoints;
mod pod;
mod pod_status;
mod pod_template;
mod pod_update;
mod replication_controller;
mod service;

use super::Strategy;

pub(super) const KINDS: &[Strategy] = &[
    endpoints::STRATEGY,
    pod::STRATEGY,
    pod_template::STRATEGY,
    replication_controller::STRATEGY,
    service::STRATEGY,
];
