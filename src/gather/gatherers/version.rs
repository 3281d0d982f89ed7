//! Gathers the version of the platform and the id of the cluster: the ClusterVersion if there is one, or else the API
//! server's version and the uid of the namespace kube-system.

use futures::FutureExt;
use serde_json::Value;

use super::super::cluster;
use super::super::failure::Failure;
use super::super::gatherer::{Context, Gatherer, Run};
use super::super::lister::{self, Resource};

pub(super) const ROW: Gatherer = Gatherer {
    id: "clusterconfig/version",
    collects: "the ClusterVersion, or the API server's version, and the cluster's id",
    path: "config/version.json, config/id",
    run: Run::Alone(|context| gather(context).boxed()),
};

const CLUSTER_VERSION: Resource = Resource {
    group: "config.openshift.io",
    version: "v1",
    kind: "ClusterVersion",
    plural: "clusterversions",
};

async fn gather(context: Context) -> Result<(), Failure> {
    let version = match lister::get(&context, CLUSTER_VERSION, "version").await {
        Ok(Some(version)) => version,
        Ok(None) | Err(Failure::MissingApi(_)) => api_server_version(&context).await?,
        Err(failure) => return Err(failure),
    };
    context.json("config/version", version).await?;
    match cluster::id(&context.client).await {
        Ok(id) => context.raw("config/id", id).await,
        Err(error) => {
            context.recorder.fail(error.to_string());
            Ok(())
        }
    }
}

async fn api_server_version(context: &Context) -> Result<Value, Failure> {
    let failure = |source| Failure::Api { what: "/version".to_owned(), source: Box::new(source) };
    let version = context.client.apiserver_version().await.map_err(failure)?;
    Ok(serde_json::to_value(version).unwrap_or_default())
}
