//! What the cluster answers to those who decide.

use std::convert::Infallible;
use std::sync::Arc;

use admit_policy::host::{Access, AccessAttributes, Host, HostError, Scope};
use admit_policy::request::{GroupVersionKind, GroupVersionResource, UserInfo};
use kube::api::ApiResource;
use kube::{Api, Client};
use serde_json::Value;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::collection::Collection;
use super::follow::Followed;

/// The cluster's state as far as decisions ask for it.
#[derive(Debug)]
pub struct ClusterCache {
    namespaces: Arc<Collection>,
}

impl Default for ClusterCache {
    fn default() -> Self {
        Self { namespaces: Arc::new(Collection::new("namespaces")) }
    }
}

impl ClusterCache {
    /// Follows the Namespaces until `shutdown`.
    ///
    /// # Errors
    /// Never; the type says so.
    pub async fn follow_namespaces(
        self: Arc<Self>,
        client: Client,
        shutdown: CancellationToken,
    ) -> Result<(), Infallible> {
        let resource = ApiResource::erase::<k8s_openapi::api::core::v1::Namespace>(&());
        let followed = Followed {
            api: Api::all_with(client, &resource),
            resource,
            into: Arc::clone(&self.namespaces),
            changed: Arc::new(Notify::new()),
        };
        followed.run(shutdown).await;
        Ok(())
    }
}

impl Host for ClusterCache {
    fn namespace(&self, name: &str) -> Result<Option<Arc<Value>>, HostError> {
        self.namespaces.get("", name)
    }

    fn param_scope(&self, _kind: &GroupVersionKind) -> Option<Scope> {
        None
    }

    fn params(&self, _kind: &GroupVersionKind, _namespace: &str) -> Result<Vec<Arc<Value>>, HostError> {
        Ok(Vec::new())
    }

    fn equivalents(
        &self,
        _resource: &GroupVersionResource,
        _subresource: &str,
    ) -> Vec<(GroupVersionResource, GroupVersionKind)> {
        Vec::new()
    }

    fn convert(&self, _object: &Value, kind: &GroupVersionKind) -> Result<Value, HostError> {
        Err(HostError(format!("no conversion to {}, Kind={}", kind.api_version(), kind.kind)))
    }

    fn authorize(&self, _user: &UserInfo, _attributes: &AccessAttributes) -> Result<Access, HostError> {
        Err(HostError("no authorizer".to_owned()))
    }
}
