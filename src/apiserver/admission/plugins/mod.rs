//! Runs the admission plugins that kube-apiserver has built in, one file each, in its order.
//!
//! Each has two phases. The mutating phase changes the object before it is validated, and before mutating webhooks see it
//! (and once more when one of those changed it); the validating phase checks it after its validation, before policies and
//! validating webhooks. `ResourceQuota` runs last, so that nothing is charged for what another refuses.
//!
//! Input: a [`Request`], which is a review and the object as the previous plugins left it. Output: the changed object, or
//! a refusal in kube-apiserver's words. Plugins only read the cluster, except one that creates namespaces. Their settings
//! and their state are in `settings` and `live`.
//!
//! Read from plugin/pkg/admission and pkg/kubeapiserver/options/plugins.go of Kubernetes 1.36.

mod alone;
mod always;
mod always_pull_images;
mod anti_affinity;
mod auto_provision;
mod certificates;
mod claim_resize;
mod default_classes;
mod default_toleration_seconds;
mod event_rate_limit;
mod extended_tolerations;
mod external_ips;
mod image_policy;
mod limit_ranger;
mod live;
mod namespace_lifecycle;
mod node_features;
mod node_restriction;
mod node_selector;
mod offline;
mod owner_references;
mod pod_resize;
mod pod_security;
mod pod_tolerations;
mod pod_topology_labels;
mod pods;
mod priority;
mod request;
pub(crate) mod resource_quota;
mod resources;
mod runtime_class;
mod selection;
mod service_account;
mod settings;
mod storage_in_use;
mod taint_nodes;
#[cfg(test)]
mod tests;

use futures::future::BoxFuture;

use self::alone::Alone;
use crate::status::Refusal;

pub(super) use self::live::Live;
pub(crate) use self::offline::Offline;
pub(super) use self::request::Request;
pub use self::selection::{AdmissionPlugins, PluginError};
pub(super) use self::selection::{
    MUTATING_POLICIES, MUTATING_WEBHOOKS, VALIDATING_POLICIES, VALIDATING_WEBHOOKS,
};
pub(in crate::admission) use self::settings::WebhookUsers;
pub use self::settings::{AdmissionConfiguration, SettingsError};

/// The name of the plugin that gives each pod a service account.
pub(crate) const SERVICE_ACCOUNTS: &str = service_account::PLUGIN.name;

type Mutate = fn(&mut Request<'_>) -> Result<(), Refusal>;
type Validate = fn(&Request<'_>) -> Result<(), Refusal>;

/// A built-in plugin with its two phases.
pub(super) struct Plugin {
    pub(super) name: &'static str,
    pub(super) mutate: Option<Mutate>,
    pub(super) validate: Option<Validate>,
    /// Whether it runs without a cluster.
    pub(super) alone: Alone,
}

/// A plugin that waits for another server, or for a write.
pub(super) struct Waiting {
    pub(super) name: &'static str,
    pub(super) ask: for<'r> fn(&'r Request<'_>) -> BoxFuture<'r, Result<(), Refusal>>,
}

/// An entry of the chain of plugins.
pub(super) enum Link {
    Now(Plugin),
    /// Runs in the mutating phase.
    Mutating(Waiting),
    /// Runs in the validating phase.
    Validating(Waiting),
}

impl Link {
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Now(plugin) => plugin.name,
            Self::Mutating(waiting) | Self::Validating(waiting) => waiting.name,
        }
    }

    /// Returns whether it can run without a cluster; plugins that wait cannot.
    fn acts_alone(&self) -> bool {
        matches!(self, Self::Now(plugin) if !matches!(plugin.alone, Alone::Never))
    }
}

/// The plugins, in upstream's order.
pub(super) const CHAIN: &[Link] = &[
    Link::Now(always::ADMIT),
    Link::Mutating(auto_provision::PLUGIN),
    Link::Now(namespace_lifecycle::PLUGIN),
    Link::Now(namespace_lifecycle::EXISTS),
    Link::Now(anti_affinity::PLUGIN),
    Link::Now(limit_ranger::PLUGIN),
    Link::Now(service_account::PLUGIN),
    Link::Now(node_restriction::PLUGIN),
    Link::Now(taint_nodes::PLUGIN),
    Link::Now(always_pull_images::PLUGIN),
    Link::Validating(image_policy::PLUGIN),
    Link::Now(pod_security::PLUGIN),
    Link::Now(node_selector::PLUGIN),
    Link::Now(priority::PLUGIN),
    Link::Now(default_toleration_seconds::PLUGIN),
    Link::Now(pod_tolerations::PLUGIN),
    Link::Now(event_rate_limit::PLUGIN),
    Link::Now(extended_tolerations::PLUGIN),
    Link::Now(default_classes::STORAGE),
    Link::Now(storage_in_use::PLUGIN),
    Link::Now(owner_references::PLUGIN),
    Link::Now(claim_resize::PLUGIN),
    Link::Now(runtime_class::PLUGIN),
    Link::Now(certificates::APPROVAL),
    Link::Now(certificates::SIGNING),
    Link::Now(certificates::ATTEST),
    Link::Now(certificates::SUBJECT),
    Link::Now(default_classes::INGRESS),
    Link::Now(external_ips::PLUGIN),
    Link::Now(pod_topology_labels::PLUGIN),
    Link::Now(node_features::PLUGIN),
    Link::Now(pod_resize::PLUGIN),
    Link::Now(always::DENY),
];

/// The plugins that run only if they are enabled.
pub(super) const OFF_BY_DEFAULT: [&str; 14] = [
    always::ADMIT.name,
    always::DENY.name,
    always_pull_images::PLUGIN.name,
    anti_affinity::PLUGIN.name,
    auto_provision::PLUGIN.name,
    event_rate_limit::PLUGIN.name,
    extended_tolerations::PLUGIN.name,
    external_ips::PLUGIN.name,
    image_policy::PLUGIN.name,
    namespace_lifecycle::EXISTS.name,
    node_restriction::PLUGIN.name,
    node_selector::PLUGIN.name,
    owner_references::PLUGIN.name,
    pod_tolerations::PLUGIN.name,
];
