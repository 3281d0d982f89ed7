//! `ObservabilityAddon`, observability.open-cluster-management.io/v1beta1, as Rust types. The schema that the API
//! server enforces is `deploy/crds/observabilityaddons.yaml`; these types read what it accepts.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Name of the one add-on of a cluster, on the spoke and on the hub.
pub const NAME: &str = "observability-addon";

/// Where the add-on of a spoke lies.
pub const SPOKE_NAMESPACE: &str = "open-cluster-management-addon-observability";

/// Keeps the hub's object until the spoke has cleaned up.
pub const FINALIZER: &str = "observability.open-cluster-management.io/addon-cleanup";

/// Says who owns the spec: `mco` (the hub, which overwrites it) or `override` (left alone).
pub const SOURCE: &str = "observability.open-cluster-management.io/addon-source";

/// What [`SOURCE`] says where the hub owns the spec.
pub const SOURCE_HUB: &str = "mco";

/// What [`SOURCE`] says where the spec of the spoke's object is its own.
pub const SOURCE_OVERRIDE: &str = "override";

/// What the endpoint operator last told of the collector and of that of user workloads, so that it tells each change once.
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
    /// Everything else, which no decision here looks at and which is handed on as it is.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct ObservabilityAddonStatus {
    /// A plain list, without keys: whoever changes one writes them all.
    #[serde(default)]
    pub conditions: Vec<Condition>,
}

impl ObservabilityAddon {
    /// None where nothing was reported yet.
    #[must_use]
    pub fn conditions(&self) -> &[Condition] {
        self.status.as_ref().map_or(&[], |status| &status.conditions)
    }
}
