//! Defines `DataGather`, insights.openshift.io/v1alpha1, as Rust types. The schema that the API server enforces is
//! `deploy/crds/datagathers.yaml`; these types have to read what that accepts, and write what it accepts.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use serde::{Deserialize, Serialize};

#[derive(Clone, CustomResource, Debug, Default, Deserialize, PartialEq, Serialize)]
#[kube(
    group = "insights.openshift.io",
    version = "v1alpha1",
    kind = "DataGather",
    plural = "datagathers",
    status = "DataGatherStatus",
    schema = "disabled",
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
pub struct DataGatherSpec {
    #[serde(default)]
    pub data_policy: DataPolicy,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gatherers_config: Vec<GathererConfig>,
    /// The name of later clients for `gatherersConfig`; its entries are applied after those.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gatherers: Vec<GathererConfig>,
    /// Where the archive is stored until it is uploaded; by default as in the settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<Storage>,
}

/// Where a Job stores an archive.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Storage {
    #[serde(rename = "type")]
    pub kind: StorageKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persistent_volume: Option<PersistentVolume>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub enum StorageKind {
    PersistentVolume,
    Ephemeral,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PersistentVolume {
    pub claim: Claim,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mount_path: Option<String>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Claim {
    pub name: String,
}

impl DataGather {
    /// Whether it has run, or could not be run.
    pub fn has_ended(&self) -> bool {
        let state = self.status.as_ref().and_then(|status| status.data_gather_state);
        matches!(state, Some(State::Completed | State::Failed))
    }
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub enum DataPolicy {
    /// The default, which today means clear text.
    #[default]
    #[serde(rename = "")]
    Unset,
    ClearText,
    ObfuscateNetworking,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct GathererConfig {
    pub name: String,
    #[serde(default)]
    pub state: GathererState,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub enum GathererState {
    /// The default, which today means enabled.
    #[default]
    #[serde(rename = "")]
    Unset,
    Enabled,
    Disabled,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DataGatherStatus {
    #[serde(default)]
    pub conditions: Vec<Condition>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_gather_state: Option<State>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gatherers: Vec<GathererStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finish_time: Option<Time>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub related_objects: Vec<RelatedObject>,
    #[serde(rename = "insightsRequestID", skip_serializing_if = "Option::is_none")]
    pub insights_request_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub insights_report: Option<InsightsReport>,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum State {
    Pending,
    Running,
    Completed,
    Failed,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GathererStatus {
    pub conditions: Vec<Condition>,
    pub name: String,
    /// A duration in Go's format, for example `1.25s`.
    pub last_gather_duration: String,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct RelatedObject {
    pub group: String,
    pub resource: String,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InsightsReport {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub downloaded_at: Option<Time>,
    #[serde(default)]
    pub health_checks: Vec<HealthCheck>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HealthCheck {
    pub description: String,
    pub total_risk: i32,
    #[serde(rename = "advisorURI")]
    pub advisor_uri: String,
    pub state: HealthCheckState,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub enum HealthCheckState {
    Enabled,
    Disabled,
}
