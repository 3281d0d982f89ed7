//! Reads facts about the cluster that a gathering needs before it starts: its id, the names and networks to hide, and its proxies.
//!
//! On a plain Kubernetes cluster the id is the uid of the namespace kube-system, which exists as long as the cluster.

mod names;
mod networks;
mod proxies;

use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, DynamicObject};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, ResourceExt};
use serde_json::Value;

use crate::telemetry::with_causes;

pub use names::{Names, NamesError, names};
pub use networks::networks;
pub use proxies::proxies;

/// Why the cluster's id could not be read.
#[derive(Debug, thiserror::Error)]
pub enum IdError {
    #[error("cannot read the cluster's id: {}", with_causes(.0))]
    Api(#[from] Box<kube::Error>),
    #[error("cannot read the cluster's id: there is neither a ClusterVersion nor a namespace kube-system")]
    Unknown,
}

/// Returns the cluster's id: `spec.clusterID` of the ClusterVersion, or else the uid of the namespace kube-system.
///
/// # Errors
/// [`IdError`] when neither can be read.
pub async fn id(client: &Client) -> Result<String, IdError> {
    let kind = GroupVersionKind::gvk("config.openshift.io", "v1", "ClusterVersion");
    let versions: Api<DynamicObject> = Api::all_with(client.clone(), &ApiResource::from_gvk(&kind));
    let version = match versions.get("version").await {
        Ok(version) => Some(version),
        // Servers without this kind answer 404, or 403 to users without permission.
        Err(kube::Error::Api(status)) if matches!(status.code, 403 | 404) => None,
        Err(error) => return Err(Box::new(error).into()),
    };
    let cluster_id = version.as_ref().and_then(|version| version.data.pointer("/spec/clusterID"));
    if let Some(id) = cluster_id.and_then(|id| id.as_str()) {
        return Ok(id.to_owned());
    }
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let system = namespaces.get_opt("kube-system").await.map_err(Box::new)?;
    system.and_then(|namespace| namespace.uid()).ok_or(IdError::Unknown)
}

/// Returns the version of the platform: that of the ClusterVersion, or else the API server's.
///
/// # Errors
/// When neither can be read.
pub async fn version(client: &Client) -> Result<String, kube::Error> {
    let kind = GroupVersionKind::gvk("config.openshift.io", "v1", "ClusterVersion");
    let versions: Api<DynamicObject> = Api::all_with(client.clone(), &ApiResource::from_gvk(&kind));
    let version = match versions.get("version").await {
        Ok(version) => {
            version.data.pointer("/status/desired/version").and_then(Value::as_str).map(str::to_owned)
        }
        Err(kube::Error::Api(status)) if matches!(status.code, 403 | 404) => None,
        Err(error) => return Err(error),
    };
    match version {
        Some(version) => Ok(version),
        None => {
            let version = client.apiserver_version().await?.git_version;
            Ok(version.strip_prefix('v').unwrap_or(&version).to_owned())
        }
    }
}

/// Reads the object `cluster` of a kind of config.openshift.io/v1, if it exists.
async fn configuration(client: &Client, kind: &str, plural: &str) -> Result<Option<Value>, kube::Error> {
    let kind = GroupVersionKind::gvk("config.openshift.io", "v1", kind);
    let resource = ApiResource::from_gvk_with_plural(&kind, plural);
    let objects: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    match objects.get("cluster").await {
        Ok(object) => Ok(Some(object.data)),
        // Servers without this kind answer 404 too, without a Status.
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error),
    }
}
