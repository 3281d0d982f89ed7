//! Lists the kinds of the core group (pkg/apis/core/validation and pkg/registry/core).

mod config_map;
mod container_status;
mod endpoints;
mod frozen;
mod key_pair;
mod limit_range;
mod namespace;
mod node;
mod persistent_volume;
pub(in crate::kinds) mod persistent_volume_claim;
mod pod;
mod pod_begin;
mod pod_below;
mod pod_status;
mod pod_template;
mod pod_update;
mod replication_controller;
mod resource_quota;
mod secret;
pub(crate) mod service;
mod service_account;
mod volume_sources;
pub(in crate::kinds) mod volume_spec;

pub(crate) use pod_status::quality as quality_of_service;

use super::Strategy;

pub(super) const KINDS: &[Strategy] = &[
    config_map::STRATEGY,
    endpoints::STRATEGY,
    limit_range::STRATEGY,
    namespace::STRATEGY,
    node::STRATEGY,
    persistent_volume::STRATEGY,
    persistent_volume_claim::STRATEGY,
    pod::STRATEGY,
    pod_template::STRATEGY,
    replication_controller::STRATEGY,
    resource_quota::STRATEGY,
    secret::STRATEGY,
    service::STRATEGY,
    service_account::STRATEGY,
];
