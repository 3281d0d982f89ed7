//! Deletes DataGathers and gathering Jobs that are too old, whatever their result and whoever created them.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use kube::api::{DeleteParams, ListParams, Preconditions};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use tracing::{info, warn};

use super::crd::DataGather;
use super::job::LABEL;
use super::{Context, RunnerKind};
use crate::telemetry::with_causes;

/// The interval of checks.
const EVERY: Duration = Duration::from_hours(1);

/// Deletes objects that are older than `after`; returns when to check again.
///
/// # Errors
/// When the objects cannot be listed. An object that cannot be deleted is skipped.
pub(super) async fn round(context: Arc<Context>, after: Duration) -> Result<Duration, kube::Error> {
    let settings = context.settings();
    let old = Old { after, now: settings.clock.now() };
    let gatherings: Api<DataGather> = Api::all(context.client.clone());
    old.delete(&gatherings, &ListParams::default()).await?;
    if let RunnerKind::Job(_) = settings.runner {
        let jobs: Api<Job> = Api::namespaced(context.client.clone(), &settings.namespace);
        old.delete(&jobs, &ListParams::default().labels(LABEL)).await?;
    }
    Ok(EVERY)
}

struct Old {
    after: Duration,
    now: jiff::Timestamp,
}

impl Old {
    async fn delete<K>(&self, api: &Api<K>, selected: &ListParams) -> Result<(), kube::Error>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
    {
        for object in api.list_metadata(selected).await?.items {
            let (Some(name), Some(created)) = (object.metadata.name, object.metadata.creation_timestamp)
            else {
                continue;
            };
            let age = Duration::try_from(self.now.duration_since(created.0)).unwrap_or_default();
            if age <= self.after || object.metadata.deletion_timestamp.is_some() {
                continue;
            }
            // Not another object that has the name by now.
            let meant = Preconditions { uid: object.metadata.uid, resource_version: None };
            let kind = K::kind(&());
            match api.delete(&name, &DeleteParams::background().preconditions(meant)).await {
                Ok(_) => info!(%kind, name, "pruned"),
                Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
                Err(error) => warn!(%kind, name, error = with_causes(&error), "cannot be pruned"),
            }
        }
        Ok(())
    }
}
