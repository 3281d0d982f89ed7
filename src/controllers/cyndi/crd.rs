//! Defines `CyndiPipeline`, cyndi.cloud.redhat.com/v1alpha1, as Rust types. The schema that the API server enforces is
//! `deploy/crds/cyndipipelines.yaml`.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use serde::{Deserialize, Serialize};

use crate::controllers::kit::clock::whole_seconds;
use crate::controllers::kit::conditions::{Shape, Statement};

#[derive(Clone, CustomResource, Debug, Default, Deserialize, PartialEq, Serialize)]
#[kube(
    group = "cyndi.cloud.redhat.com",
    version = "v1alpha1",
    kind = "CyndiPipeline",
    plural = "cyndipipelines",
    namespaced,
    status = "CyndiPipelineStatus",
    schema = "disabled",
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
pub struct CyndiPipelineSpec {
    #[serde(default)]
    pub app_name: String,
    #[serde(default)]
    pub insights_only: bool,
    #[serde(default)]
    pub additional_filters: Vec<BTreeMap<String, String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect_cluster: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub db_secret: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inventory_db_secret: Option<String>,
    /// The maximum age of hosts in days.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_age: Option<i64>,
    /// The percentage of hosts that may differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation_threshold: Option<i64>,
    #[serde(default, rename = "dbTableIndexSQL", skip_serializing_if = "Option::is_none")]
    pub db_table_index_sql: Option<String>,
    /// Any change of it rebuilds the table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh: Option<String>,
    #[serde(default = "yes")]
    pub managed_connectors: bool,
    #[serde(default)]
    pub connector_paused: bool,
}

fn yes() -> bool {
    true
}

impl CyndiPipelineSpec {
    /// Returns the name of the Secret for the application's database.
    #[must_use]
    pub fn db_secret(&self) -> String {
        self.db_secret.clone().unwrap_or_else(|| format!("{}-db", self.app_name))
    }
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CyndiPipelineStatus {
    /// The number of failed validations in a row.
    #[serde(default)]
    pub validation_failed_count: i64,
    #[serde(default)]
    pub pipeline_version: String,
    /// The connector's name.
    #[serde(default)]
    pub cyndi_pipeline_name: String,
    #[serde(default)]
    pub table_name: String,
    #[serde(default)]
    pub cyndi_config_version: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec_hash: Option<String>,
    #[serde(default)]
    pub initial_sync_in_progress: bool,
    /// The table that the view shows; empty if there is none.
    #[serde(default)]
    pub active_table_name: String,
    #[serde(default)]
    pub conditions: Vec<PipelineCondition>,
    /// The number of hosts in the table at the last validation; -1 before the first.
    #[serde(default)]
    pub host_count: i64,
}

/// A condition as in the CRD, where all fields but type and status are optional.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PipelineCondition {
    #[serde(rename = "type")]
    pub type_: String,
    pub status: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    #[serde(default = "long_ago")]
    pub last_transition_time: Time,
}

fn long_ago() -> Time {
    Time(Timestamp::UNIX_EPOCH)
}

impl Shape for PipelineCondition {
    fn type_(&self) -> &str {
        &self.type_
    }

    fn status(&self) -> &str {
        &self.status
    }

    fn since(&self) -> &Time {
        &self.last_transition_time
    }

    /// Creates a condition; the CRD has no field for the generation.
    fn stated(statement: Statement, since: Time, _generation: Option<i64>) -> Self {
        let Statement { type_, truth, reason, message } = statement;
        let (type_, status) = (type_.to_owned(), truth.as_str().to_owned());
        Self { type_, status, reason, message, last_transition_time: Time(whole_seconds(since.0)) }
    }
}
