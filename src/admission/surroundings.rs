//! What policies may ask about beside the request: the loaded files first, then the cluster, where one is watched.

use std::sync::Arc;

use admit_policy::Documents;
use admit_policy::host::{Access, AccessAttributes, Host, HostError, Scope};
use admit_policy::request::{GroupVersionKind, GroupVersionResource, UserInfo};
use serde_json::Value;

/// What is known of a cluster: made elsewhere, asked from the threads that decide.
pub type Cluster = Arc<dyn Host + Send + Sync>;

/// No cluster: whatever files do not answer stays unanswered.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoCluster;

impl Host for NoCluster {
    fn namespace(&self, _name: &str) -> Result<Option<Arc<Value>>, HostError> {
        Ok(None)
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
        Err(HostError("no authorizer: access can be checked with a cluster only".to_owned()))
    }
}

/// Files and cluster together.
#[derive(Debug)]
pub(super) struct Surroundings<'a> {
    pub(super) files: &'a Documents,
    pub(super) cluster: &'a dyn Host,
}

impl Host for Surroundings<'_> {
    /// The cluster's own state is newer than any file. Where it cannot be told, a file does not stand in for it.
    fn namespace(&self, name: &str) -> Result<Option<Arc<Value>>, HostError> {
        match self.cluster.namespace(name)? {
            Some(namespace) => Ok(Some(namespace)),
            None => self.files.namespace(name),
        }
    }

    fn param_scope(&self, kind: &GroupVersionKind) -> Option<Scope> {
        self.files.param_scope(kind).or_else(|| self.cluster.param_scope(kind))
    }

    fn params(&self, kind: &GroupVersionKind, namespace: &str) -> Result<Vec<Arc<Value>>, HostError> {
        let params = self.files.params(kind, namespace)?;
        if params.is_empty() { self.cluster.params(kind, namespace) } else { Ok(params) }
    }

    fn equivalents(
        &self,
        resource: &GroupVersionResource,
        subresource: &str,
    ) -> Vec<(GroupVersionResource, GroupVersionKind)> {
        let of_files = self.files.equivalents(resource, subresource);
        if of_files.is_empty() { self.cluster.equivalents(resource, subresource) } else { of_files }
    }

    fn convert(&self, object: &Value, kind: &GroupVersionKind) -> Result<Value, HostError> {
        self.files.convert(object, kind).or_else(|_| self.cluster.convert(object, kind))
    }

    fn authorize(&self, user: &UserInfo, attributes: &AccessAttributes) -> Result<Access, HostError> {
        self.files.authorize(user, attributes).or_else(|_| self.cluster.authorize(user, attributes))
    }
}
