//! Defines `ClusterOperator`, config.openshift.io/v1, as a Rust type with the fields for reporting, priming and waiting.
//! Other fields, such as `status.extension`, are neither read nor changed.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use serde::{Deserialize, Serialize};

use crate::controllers::kit::conditions::{Shape, Statement};

/// The empty spec: a ClusterOperator only reports.
#[derive(Clone, CustomResource, Debug, Default, Deserialize, PartialEq, Serialize)]
#[kube(
    group = "config.openshift.io",
    version = "v1",
    kind = "ClusterOperator",
    plural = "clusteroperators",
    status = "ClusterOperatorStatus",
    schema = "disabled",
    derive = "PartialEq"
)]
pub struct ClusterOperatorSpec {}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterOperatorStatus {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<OperatorCondition>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<OperandVersion>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub related_objects: Vec<RelatedObject>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OperatorCondition {
    #[serde(rename = "type")]
    pub type_: String,
    /// True, False or Unknown; the CRD allows any string.
    pub status: String,
    pub last_transition_time: Time,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl Shape for OperatorCondition {
    fn type_(&self) -> &str {
        &self.type_
    }

    fn status(&self) -> &str {
        &self.status
    }

    fn since(&self) -> &Time {
        &self.last_transition_time
    }

    /// Creates a condition without a generation, since a ClusterOperator has no spec.
    fn stated(statement: Statement, since: Time, _generation: Option<i64>) -> Self {
        let Statement { type_, truth, reason, message } = statement;
        let (type_, status) = (type_.to_owned(), truth.as_str().to_owned());
        let said = |text: String| Some(text).filter(|text| !text.is_empty());
        Self { type_, status, last_transition_time: since, reason: said(reason), message: said(message) }
    }
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct OperandVersion {
    pub name: String,
    pub version: String,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct RelatedObject {
    pub group: String,
    pub resource: String,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

impl ClusterOperator {
    /// Returns its status; empty if it has none.
    #[must_use]
    pub fn report(&self) -> ClusterOperatorStatus {
        self.status.clone().unwrap_or_default()
    }

    /// Returns the status of the condition `type_`, if there is one.
    #[must_use]
    pub fn condition(&self, type_: &str) -> Option<&str> {
        let conditions = self.status.iter().flat_map(|status| &status.conditions);
        conditions.into_iter().find(|condition| condition.type_ == type_).map(|found| found.status.as_str())
    }
}
