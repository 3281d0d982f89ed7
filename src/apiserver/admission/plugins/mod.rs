//! The admission plugins that kube-apiserver has built in, one file each, in its order: those that are on by default, and those of the
//! others that need no configuration.
//!
//! Each has two phases. Mutating ones change the object before it is validated, and before mutating webhooks see it
//! (and once more when one of those changed it); validating ones look at it after its validation, before policies and
//! validating webhooks. `ResourceQuota` comes after these, so that nothing is charged for what they refuse.
//!
//! Input: a [`Request`], which is a review and the object as the plugins before left it. Output: the changed object, or
//! a refusal in kube-apiserver's words. Plugins read the cluster and write nothing.
//!
//! Read from plugin/pkg/admission and pkg/kubeapiserver/options/plugins.go of Kubernetes 1.36.

mod always;
mod always_pull_images;
mod anti_affinity;
mod certificates;
mod claim_resize;
mod default_classes;
mod default_toleration_seconds;
mod extended_tolerations;
mod external_ips;
mod limit_ranger;
mod namespace_lifecycle;
mod node_features;
mod node_restriction;
mod node_selector;
mod owner_references;
mod pod_resize;
mod pod_security;
mod pod_topology_labels;
mod pods;
mod priority;
mod request;
pub(crate) mod resource_quota;
mod resources;
mod runtime_class;
mod selection;
mod service_account;
mod storage_in_use;
mod taint_nodes;
#[cfg(test)]
mod tests;

use crate::status::Refusal;

pub(super) use self::request::Request;
pub use self::selection::{AdmissionPlugins, PluginError};
pub(super) use self::selection::{
    MUTATING_POLICIES, MUTATING_WEBHOOKS, VALIDATING_POLICIES, VALIDATING_WEBHOOKS,
};

/// The name of the plugin that wants each pod to have a service account.
pub(crate) const SERVICE_ACCOUNTS: &str = service_account::PLUGIN.name;

type Mutate = fn(&mut Request<'_>) -> Result<(), Refusal>;
type Validate = fn(&Request<'_>) -> Result<(), Refusal>;

/// A plugin that is run here.
pub(super) struct Plugin {
    pub(super) name: &'static str,
    pub(super) mutate: Option<Mutate>,
    pub(super) validate: Option<Validate>,
}

/// In upstream's order.
pub(super) const CHAIN: &[Plugin] = &[
    always::ADMIT,
    namespace_lifecycle::PLUGIN,
    namespace_lifecycle::EXISTS,
    anti_affinity::PLUGIN,
    limit_ranger::PLUGIN,
    service_account::PLUGIN,
    node_restriction::PLUGIN,
    taint_nodes::PLUGIN,
    always_pull_images::PLUGIN,
    pod_security::PLUGIN,
    node_selector::PLUGIN,
    priority::PLUGIN,
    default_toleration_seconds::PLUGIN,
    extended_tolerations::PLUGIN,
    default_classes::STORAGE,
    storage_in_use::PLUGIN,
    owner_references::PLUGIN,
    claim_resize::PLUGIN,
    runtime_class::PLUGIN,
    certificates::APPROVAL,
    certificates::SIGNING,
    certificates::ATTEST,
    certificates::SUBJECT,
    default_classes::INGRESS,
    external_ips::PLUGIN,
    pod_topology_labels::PLUGIN,
    node_features::PLUGIN,
    pod_resize::PLUGIN,
    always::DENY,
];

/// Those that run only where they are enabled.
pub(super) const OFF_BY_DEFAULT: [&str; 10] = [
    always::ADMIT.name,
    always::DENY.name,
    always_pull_images::PLUGIN.name,
    anti_affinity::PLUGIN.name,
    extended_tolerations::PLUGIN.name,
    external_ips::PLUGIN.name,
    namespace_lifecycle::EXISTS.name,
    node_restriction::PLUGIN.name,
    node_selector::PLUGIN.name,
    owner_references::PLUGIN.name,
];
