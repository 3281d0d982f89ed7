//! Manages connectors as KafkaConnector objects, which Strimzi turns into connectors of Kafka Connect.
//!
//! Strimzi serves v1beta2, v1 or both, and will drop the older one: the served version is discovered, and again
//! when it is gone.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures::stream::{self, BoxStream};
use futures::{FutureExt as _, Stream, StreamExt as _};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::{GroupVersionKind, PartialObjectMeta};
use kube::runtime::watcher::{Config, Event};
use kube::{Api, Client, CustomResource, Resource, ResourceExt as _};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::sleep;

use super::Error;
use super::backend::{Connectors, Done};
use super::connector::{CLASS, Found, OWNER, Wanted, as_texts, failed};
use super::crd::CyndiPipeline;
use crate::controllers::kit::wait::GrowingWait;
use crate::controllers::kit::watch;
use crate::telemetry::Secrets;

pub const GROUP: &str = "kafka.strimzi.io";
const KIND: &str = "KafkaConnector";
/// The page size for a pipeline's connectors: there are two, or some more after crashes. A longer list is not from this controller.
const MAX_LISTED: u32 = 500;
/// The first and the longest wait for checking whether Strimzi was installed.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(20);
/// How soon the watch notices that a version is not served any more after an upgrade of Strimzi; pipelines are reconciled every two
/// minutes all the same.
const WATCHED: Duration = Duration::from_mins(5);

/// The known versions, the older first: clusters that serve both store that one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Version {
    V1Beta2,
    V1,
}

impl Version {
    const ALL: [Self; 2] = [Self::V1Beta2, Self::V1];

    fn as_str(self) -> &'static str {
        match self {
            Self::V1Beta2 => "v1beta2",
            Self::V1 => "v1",
        }
    }

    /// Discovers which version is served, if any.
    async fn served(client: &Client) -> Result<Option<Self>, kube::Error> {
        for version in Self::ALL {
            let group = format!("{GROUP}/{}", version.as_str());
            match client.list_api_group_resources(&group).await {
                Ok(listed) if listed.resources.iter().any(|resource| resource.kind == KIND) => {
                    return Ok(Some(version));
                }
                Ok(_) => {}
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    fn resource(self) -> ApiResource {
        ApiResource::from_gvk(&GroupVersionKind::gvk(GROUP, self.as_str(), KIND))
    }
}

/// The kind, for watches of its metadata only.
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

/// The same for Strimzi's later releases.
mod v1 {
    use kube::CustomResource;
    use serde::{Deserialize, Serialize};

    #[derive(Clone, CustomResource, Debug, Default, Deserialize, Serialize)]
    #[kube(
        group = "kafka.strimzi.io",
        version = "v1",
        kind = "KafkaConnector",
        plural = "kafkaconnectors",
        namespaced,
        schema = "disabled"
    )]
    pub(super) struct KafkaConnectorSpec {}
}

/// Watches the metadata of pipelines' connectors in the served version, as soon as there is one.
pub(super) fn changes(client: Client) -> impl Stream<Item = ObjectMeta> + Send {
    let epochs = stream::unfold(client, |client| async move {
        let version = installed(&client).await;
        let changes = match version {
            Version::V1Beta2 => metadata::<KafkaConnector>(&client),
            Version::V1 => metadata::<v1::KafkaConnector>(&client),
        };
        let over = taken_away(client.clone(), version).boxed();
        Some((changes.take_until(over), client))
    });
    epochs.flatten()
}

async fn installed(client: &Client) -> Version {
    let mut wait = GrowingWait::new(FIRST_WAIT, LONGEST_WAIT);
    loop {
        // Errors are reported by reconciliations.
        if let Ok(Some(version)) = Version::served(client).await {
            return version;
        }
        sleep(wait.grow()).await;
    }
}

async fn taken_away(client: Client, version: Version) {
    loop {
        sleep(WATCHED).await;
        if Version::served(&client).await.is_ok_and(|served| served != Some(version)) {
            return;
        }
    }
}

fn metadata<K>(client: &Client) -> BoxStream<'static, ObjectMeta>
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + Send + Sync + 'static,
{
    let all: Api<PartialObjectMeta<K>> = Api::all(client.clone());
    let events = watch::events(all, Config::default().labels(OWNER));
    let changed = events.filter_map(async |event| match event {
        Event::Apply(object) | Event::InitApply(object) | Event::Delete(object) => Some(object.metadata),
        Event::Init | Event::InitDone => None,
    });
    changed.boxed()
}

/// Manages the KafkaConnectors of a cluster.
pub(super) struct Strimzi {
    client: Client,
    /// The discovered version.
    served: Mutex<Option<Version>>,
}

impl Strimzi {
    pub(super) fn new(client: Client) -> Self {
        Self { client, served: Mutex::new(None) }
    }

    async fn version(&self) -> Result<Version, Error> {
        if let Some(known) = *self.served() {
            return Ok(known);
        }
        let found = Version::served(&self.client).await?.ok_or(Error::NoConnectors)?;
        *self.served() = Some(found);
        Ok(found)
    }

    fn served(&self) -> std::sync::MutexGuard<'_, Option<Version>> {
        self.served.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn api(&self, pipeline: &CyndiPipeline) -> Result<Api<DynamicObject>, Error> {
        let resource = self.version().await?.resource();
        let namespace = pipeline.namespace().unwrap_or_default();
        Ok(Api::namespaced_with(self.client.clone(), &namespace, &resource))
    }

    async fn listed(&self, pipeline: &CyndiPipeline) -> Result<Vec<Found>, Error> {
        let owner = pipeline.uid().unwrap_or_default();
        let params = ListParams::default().labels(&format!("{OWNER}={owner}")).limit(MAX_LISTED);
        let mut listed = self.api(pipeline).await?.list(&params).await;
        if matches!(&listed, Err(kube::Error::Api(status)) if status.code == 404) {
            // The discovered version is not served any more.
            *self.served() = None;
            listed = self.api(pipeline).await?.list(&params).await;
        }
        Ok(listed?.items.iter().map(found).collect())
    }

    async fn made(&self, pipeline: &CyndiPipeline, wanted: &Wanted) -> Result<(), Error> {
        let api = self.api(pipeline).await?;
        let object = json!({
            "apiVersion": format!("{GROUP}/{}", self.version().await?.as_str()),
            "kind": KIND,
            "metadata": {
                "name": wanted.name,
                "namespace": pipeline.namespace(),
                "labels": wanted.labels,
                "ownerReferences": pipeline.controller_owner_ref(&()).into_iter().collect::<Vec<_>>(),
            },
            "spec": {
                "class": CLASS,
                "tasksMax": wanted.tasks,
                "state": state(wanted.paused),
                "config": wanted.config.0,
            },
        });
        let object: DynamicObject = serde_json::from_value(object).map_err(Error::Unwritable)?;
        api.create(&PostParams::default(), &object).await?;
        Ok(())
    }
}

impl Connectors for Strimzi {
    fn list<'a>(&'a self, pipeline: &'a CyndiPipeline) -> Done<'a, Vec<Found>> {
        self.listed(pipeline).boxed()
    }

    fn create<'a>(
        &'a self,
        pipeline: &'a CyndiPipeline,
        wanted: &'a Wanted,
        _secrets: &'a Secrets,
    ) -> Done<'a> {
        self.made(pipeline, wanted).boxed()
    }

    fn pause<'a>(&'a self, pipeline: &'a CyndiPipeline, name: &'a str, paused: bool) -> Done<'a> {
        async move {
            let patch = Patch::Merge(json!({"spec": {"state": state(paused)}}));
            self.api(pipeline).await?.patch(name, &PatchParams::default(), &patch).await?;
            Ok(())
        }
        .boxed()
    }

    /// Strimzi restarts failed connectors by itself if configured, so none is reported as restartable.
    fn restart<'a>(&'a self, _: &'a CyndiPipeline, _: &'a str) -> Done<'a> {
        async { Ok(()) }.boxed()
    }

    fn delete<'a>(&'a self, pipeline: &'a CyndiPipeline, name: &'a str) -> Done<'a> {
        async move {
            match self.api(pipeline).await?.delete(name, &DeleteParams::background()).await {
                Ok(_) => Ok(()),
                Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
                Err(error) => Err(error.into()),
            }
        }
        .boxed()
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
        restartable: false,
        leaving: object.meta().deletion_timestamp.is_some(),
    }
}
