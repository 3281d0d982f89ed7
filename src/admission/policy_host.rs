//! Answers lookups of policies beyond the request: from the cluster, if one is watched, and from the loaded files.

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use admit_policy::{
    Access, AccessAttributes, Documents, Exceptions, GroupVersionKind, GroupVersionResource, Host, HostError,
    Scope, UserInfo,
};
use serde_json::Value;

use super::converters::Converters;
use super::snapshot::InForce;

/// The watched cluster, which is queried by worker threads; None if there are only files.
pub type Cluster = Option<Arc<dyn Host + Send + Sync>>;

/// Combines files and cluster. If the cluster does not answer, files do not replace it.
#[derive(Debug)]
pub(super) struct PolicyHost<'a> {
    pub(super) files: &'a Documents,
    pub(super) in_force: &'a InForce,
    pub(super) cluster: Option<&'a (dyn Host + Send + Sync)>,
    /// Conversions of this program, which take precedence over conversion webhooks.
    pub(super) converters: &'a Converters,
    /// After this time, no further lookup is useful.
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
        // Without a cluster, only the name in the request is known, which may be enough.
        Ok(self.cluster.is_none().then(|| self.in_force.namespace(name)).flatten().map(Arc::new))
    }

    fn param_scope(&self, kind: &GroupVersionKind) -> Option<Scope> {
        self.files.param_scope(kind).or_else(|| self.cluster?.param_scope(kind))
    }

    /// Param kinds with objects in the files are looked up there; others in the cluster.
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
            // Each authorizer check is a network request: without this limit, an expression with many of them would block its thread
            // after the caller has given up.
            Some(_) if Instant::now() >= self.until => {
                Err(HostError("the time of the request is over".to_owned()))
            }
            Some(cluster) => cluster.authorize(user, attributes),
            None => self.files.authorize(user, attributes),
        }
    }

    /// Exceptions of files are in the policy set.
    fn exceptions(&self) -> Result<Option<Arc<Exceptions>>, HostError> {
        self.cluster.map_or(Ok(None), Host::exceptions)
    }

    fn now(&self) -> Option<SystemTime> {
        Some(SystemTime::now())
    }
}
