//! Defines `ObservabilityAddon`, observability.open-cluster-management.io/v1beta1, as Rust types. The schema that the API
//! server enforces is `deploy/crds/observabilityaddons.yaml`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The name of the only add-on of a cluster, on the spoke and on the hub.
pub const NAME: &str = "observability-addon";

/// The namespace of the add-on on a spoke.
pub const SPOKE_NAMESPACE: &str = "open-cluster-management-addon-observability";

/// Keeps the hub's object until the spoke has cleaned up.
pub const FINALIZER: &str = "observability.open-cluster-management.io/addon-cleanup";

/// The annotation with the owner of the spec: `mco` (the hub, which overwrites it) or `override` (left alone).
pub const SOURCE: &str = "observability.open-cluster-management.io/addon-source";

/// The value of [`SOURCE`] if the hub owns the spec.
pub const SOURCE_HUB: &str = "mco";

/// The value of [`SOURCE`] if the spoke's object has its own spec.
pub const SOURCE_OVERRIDE: &str = "override";

/// The annotations with the last reports of the endpoint operator about both collectors, so that it reports each change once.
pub const TOLD: [&str; 2] = [
    "observability.open-cluster-management.io/told-of-collector",
    "observability.open-cluster-management.io/told-of-workloads-collector",
];

#[derive(Clone, CustomResource, Debug, Default, Deserialize, PartialEq, Serialize)]
#[kube(
    group = "observability.open-cluster-management.io",
    version = "v1beta1",
    kind = "ObservabilityAddon",
    plural = "observabilityaddons",
    namespaced,
    status = "ObservabilityAddonStatus",
    schema = "disabled",
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
pub struct ObservabilityAddonSpec {
    /// Whether metrics are collected and sent to the hub; the schema defaults it to true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enable_metrics: Option<bool>,
    /// All other fields, which are copied unchanged.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct ObservabilityAddonStatus {
    /// A plain list without keys: whoever changes one condition writes the whole list.
    #[serde(default)]
    pub conditions: Vec<Condition>,
}

impl ObservabilityAddon {
    /// Returns the conditions; empty if nothing was reported yet.
    #[must_use]
    pub fn conditions(&self) -> &[Condition] {
        self.status.as_ref().map_or(&[], |status| &status.conditions)
    }
}
