//! Connectors as KafkaConnector objects, which Strimzi turns into connectors of Kafka Connect.

use std::collections::BTreeMap;

use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client, CustomResource, Resource, ResourceExt};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use super::Error;
use super::connector::{CLASS, Found, OWNER, Wanted, as_texts};
use super::crd::CyndiPipeline;

pub const GROUP: &str = "kafka.strimzi.io";
const KIND: &str = "KafkaConnector";
/// Those that are known, the older first: clusters that serve both store it.
const VERSIONS: [&str; 2] = ["v1beta2", "v1"];
/// Connectors of one pipeline: two, or some more that a crash left. A list of more is not one of ours.
const MAX_LISTED: u32 = 500;

/// The kind, for watches of its metadata alone.
#[derive(Clone, CustomResource, Debug, Default, Deserialize, Serialize)]
#[kube(
    group = "kafka.strimzi.io",
    version = "v1beta2",
    kind = "KafkaConnector",
    plural = "kafkaconnectors",
    namespaced,
    schema = "disabled"
)]
pub struct KafkaConnectorSpec {}

/// The KafkaConnectors of a cluster.
pub struct Connectors {
    client: Client,
    served: OnceCell<ApiResource>,
}

impl std::fmt::Debug for Connectors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connectors").field("served", &self.served).finish_non_exhaustive()
    }
}

impl Connectors {
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self { client, served: OnceCell::new() }
    }

    async fn api(&self, namespace: &str) -> Result<Api<DynamicObject>, Error> {
        let resource = self.served.get_or_try_init(|| self.look()).await?;
        Ok(Api::namespaced_with(self.client.clone(), namespace, resource))
    }

    /// Which version is served.
    async fn look(&self) -> Result<ApiResource, Error> {
        for version in VERSIONS {
            let group = format!("{GROUP}/{version}");
            match self.client.list_api_group_resources(&group).await {
                Ok(listed) if listed.resources.iter().any(|resource| resource.kind == KIND) => {
                    return Ok(ApiResource::from_gvk(&GroupVersionKind::gvk(GROUP, version, KIND)));
                }
                Ok(_) => {}
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Error::NoConnectors)
    }

    /// Those that the pipeline with the uid owns.
    ///
    /// # Errors
    /// [`Error::NoConnectors`] where the kind is not served.
    pub(super) async fn list(&self, namespace: &str, owner: &str) -> Result<Vec<Found>, Error> {
        let params = ListParams::default().labels(&format!("{OWNER}={owner}")).limit(MAX_LISTED);
        let listed = self.api(namespace).await?.list(&params).await?;
        Ok(listed.items.iter().map(found).collect())
    }

    pub(super) async fn create(&self, pipeline: &CyndiPipeline, wanted: &Wanted) -> Result<(), Error> {
        let namespace = pipeline.namespace().unwrap_or_default();
        let api = self.api(&namespace).await?;
        let object = json!({
            "apiVersion": self.served.get().map(|resource| resource.api_version.clone()),
            "kind": KIND,
            "metadata": {
                "name": wanted.name,
                "namespace": namespace,
                "labels": wanted.labels,
                "ownerReferences": pipeline.controller_owner_ref(&()).into_iter().collect::<Vec<_>>(),
            },
            "spec": {
                "class": CLASS,
                "tasksMax": wanted.tasks,
                "state": state(wanted.paused),
                "config": wanted.config,
            },
        });
        let object: DynamicObject = serde_json::from_value(object).map_err(Error::Unwritable)?;
        api.create(&PostParams::default(), &object).await?;
        Ok(())
    }

    pub(super) async fn pause(&self, namespace: &str, name: &str, paused: bool) -> Result<(), Error> {
        let patch = Patch::Merge(json!({"spec": {"state": state(paused)}}));
        self.api(namespace).await?.patch(name, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// That it is gone already is as good.
    pub(super) async fn delete(&self, namespace: &str, name: &str) -> Result<(), Error> {
        match self.api(namespace).await?.delete(name, &DeleteParams::background()).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

fn state(paused: bool) -> &'static str {
    if paused { "paused" } else { "running" }
}

fn found(object: &DynamicObject) -> Found {
    let spec = &object.data["spec"];
    Found {
        name: object.name_any(),
        labels: object.labels().clone(),
        config: as_texts(&spec["config"]),
        paused: spec["state"] == "paused",
        failed: failed(&object.data["status"]["connectorStatus"]),
        leaving: object.meta().deletion_timestamp.is_some(),
    }
}

/// What failed of a connector, as Kafka Connect tells it. Traces are not repeated: they quote records.
fn failed(status: &Value) -> Option<String> {
    if status["connector"]["state"] == "FAILED" {
        return Some("the connector".to_owned());
    }
    let tasks = status["tasks"].as_array()?;
    let failed: BTreeMap<_, _> = tasks
        .iter()
        .filter(|task| task["state"] == "FAILED")
        .map(|task| (task["id"].to_string(), ()))
        .collect();
    let ids: Vec<_> = failed.into_keys().collect();
    (!ids.is_empty()).then(|| format!("task {}", ids.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cy_02_a_failed_connector_or_task_is_seen() {
        let status = |connector: &str, task: &str| json!({"connector": {"state": connector}, "tasks": [{"id": 0, "state": "RUNNING"}, {"id": 1, "state": task, "trace": "x"}]});
        assert_eq!(failed(&status("RUNNING", "RUNNING")), None);
        assert_eq!(failed(&status("RUNNING", "FAILED")).unwrap(), "task 1");
        assert_eq!(failed(&status("FAILED", "RUNNING")).unwrap(), "the connector");
        assert_eq!(failed(&Value::Null), None);
    }
}
