//! What policies may ask about beside the request: the cluster, where one is watched, and the loaded files.

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use admit_policy::{
    Access, AccessAttributes, Documents, Exceptions, GroupVersionKind, GroupVersionResource, Host, HostError,
    Scope, UserInfo,
};
use serde_json::Value;

use super::converters::Converters;
use super::snapshot::InForce;

/// What is known of a cluster, made elsewhere and asked from the threads that decide; none where only files answer.
pub type Cluster = Option<Arc<dyn Host + Send + Sync>>;

/// Files and cluster together. Where the cluster cannot tell, files do not stand in for it.
#[derive(Debug)]
pub(super) struct PolicyHost<'a> {
    pub(super) files: &'a Documents,
    pub(super) in_force: &'a InForce,
    pub(super) cluster: Option<&'a (dyn Host + Send + Sync)>,
    /// What is converted here, whoever else would have to be asked.
    pub(super) converters: &'a Converters,
    /// From when on nothing is worth asking any more.
    pub(super) until: Instant,
}

impl Host for PolicyHost<'_> {
    /// The cluster's own state is newer than any file.
    fn namespace(&self, name: &str) -> Result<Option<Arc<Value>>, HostError> {
        if let Some(cluster) = self.cluster
            && let Some(namespace) = cluster.namespace(name)?
        {
            return Ok(Some(namespace));
        }
        if let Some(namespace) = self.files.namespace(name)? {
            return Ok(Some(namespace));
        }
        // Without a cluster to ask, the name of the request is all there is, and may be enough.
        Ok(self.cluster.is_none().then(|| self.in_force.namespace(name)).flatten().map(Arc::new))
    }

    fn param_scope(&self, kind: &GroupVersionKind) -> Option<Scope> {
        self.files.param_scope(kind).or_else(|| self.cluster?.param_scope(kind))
    }

    /// Params in the folder are those of its policies; only kinds that have none there are the cluster's.
    fn params(&self, kind: &GroupVersionKind, namespace: &str) -> Result<Vec<Arc<Value>>, HostError> {
        match self.cluster {
            Some(cluster) if !self.files.holds(kind) => cluster.params(kind, namespace),
            _ => self.files.params(kind, namespace),
        }
    }

    fn params_named(
        &self,
        kind: &GroupVersionKind,
        namespace: &str,
        name: &str,
    ) -> Result<Vec<Arc<Value>>, HostError> {
        match self.cluster {
            Some(cluster) if !self.files.holds(kind) => cluster.params_named(kind, namespace, name),
            _ => self.files.params_named(kind, namespace, name),
        }
    }

    fn equivalents(
        &self,
        resource: &GroupVersionResource,
        subresource: &str,
    ) -> Vec<(GroupVersionResource, GroupVersionKind)> {
        let of_files = self.files.equivalents(resource, subresource);
        match self.cluster {
            Some(cluster) if of_files.is_empty() => cluster.equivalents(resource, subresource),
            _ => of_files,
        }
    }

    fn convert(&self, object: &Value, kind: &GroupVersionKind) -> Result<Value, HostError> {
        if let Some(converted) = self.converters.of(object, kind) {
            return converted.map_err(|error| HostError(error.to_string()));
        }
        match (self.files.convert(object, kind), self.cluster) {
            (Err(_), Some(cluster)) => cluster.convert(object, kind),
            (converted, _) => converted,
        }
    }

    fn authorize(&self, user: &UserInfo, attributes: &AccessAttributes) -> Result<Access, HostError> {
        match self.cluster {
            // Each question goes over the network: without this, an expression that asks many kept its thread for all of
            // them, whoever waited for the answer.
            Some(_) if Instant::now() >= self.until => {
                Err(HostError("the time of the request is over".to_owned()))
            }
            Some(cluster) => cluster.authorize(user, attributes),
            None => self.files.authorize(user, attributes),
        }
    }

    /// Those of files are in the set.
    fn exceptions(&self) -> Result<Option<Arc<Exceptions>>, HostError> {
        self.cluster.map_or(Ok(None), Host::exceptions)
    }

    fn now(&self) -> Option<SystemTime> {
        Some(SystemTime::now())
    }
}
