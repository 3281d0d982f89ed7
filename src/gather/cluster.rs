//! Facts about the cluster that a gathering needs before it starts: its id and the networks to hide.
//!
//! On a plain Kubernetes cluster the id is the uid of the namespace kube-system, which lives as long as the cluster.

use k8s_openapi::api::core::v1::{Namespace, Node};
use k8s_openapi::api::networking::v1::ServiceCIDR;
use kube::api::{Api, DynamicObject, ListParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, ResourceExt};
use tracing::debug;

use super::obfuscate::Network;
use crate::telemetry::with_causes;

/// Why the cluster's id could not be read.
#[derive(Debug, thiserror::Error)]
pub enum IdError {
    #[error("cannot read the cluster's id: {}", with_causes(.0))]
    Api(#[from] Box<kube::Error>),
    #[error("cannot read the cluster's id: there is neither a ClusterVersion nor a namespace kube-system")]
    Unknown,
}

/// The cluster's id: `spec.clusterID` of the ClusterVersion, else the uid of the namespace kube-system.
///
/// # Errors
/// [`IdError`] when neither can be read.
pub async fn id(client: &Client) -> Result<String, IdError> {
    let kind = GroupVersionKind::gvk("config.openshift.io", "v1", "ClusterVersion");
    let versions: Api<DynamicObject> = Api::all_with(client.clone(), &ApiResource::from_gvk(&kind));
    let version = match versions.get("version").await {
        Ok(version) => Some(version),
        // Also the answers of a server that does not know the kind: 404, or 403 to those who may not ask.
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

/// Networks that the cluster itself names: pod networks of nodes and service networks. A server that serves neither
/// kind names none; the caller adds those it was configured with.
pub async fn networks(client: &Client) -> Vec<Network> {
    let mut found = Vec::new();
    match Api::<Node>::all(client.clone()).list(&ListParams::default()).await {
        Ok(nodes) => found.extend(nodes.into_iter().filter_map(|node| node.spec?.pod_cidrs).flatten()),
        Err(error) => debug!(error = with_causes(&error), "no node networks"),
    }
    match Api::<ServiceCIDR>::all(client.clone()).list(&ListParams::default()).await {
        Ok(ranges) => found.extend(ranges.into_iter().filter_map(|range| range.spec?.cidrs).flatten()),
        Err(error) => debug!(error = with_causes(&error), "no service networks"),
    }
    // IPv6 ranges do not parse: IPv6 addresses are not rewritten.
    found.iter().filter_map(|text| text.parse().ok()).collect()
}
