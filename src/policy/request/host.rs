//! Defines the interface through which a decision reads its environment: namespaces, params and the authorizer.
//!
//! Implementations answer from memory. The CLI answers from files, the webhook from watches, the embedded server from
//! its store.

use std::sync::Arc;
use std::time::SystemTime;

use serde_json::Value;
use thiserror::Error;

use crate::request::exceptions::Exceptions;
use crate::request::{GroupVersionKind, GroupVersionResource, UserInfo};

/// Provides what a decision needs beside the request: namespaces, params, converted objects and access checks.
///
/// [`Documents`](crate::Documents) implements it for documents loaded with the policies.
///
/// ```
/// use std::sync::Arc;
///
/// use admit_policy::{
///     Access, AccessAttributes, GroupVersionKind, GroupVersionResource, Host, HostError, Scope, UserInfo,
/// };
/// use serde_json::{Value, json};
///
/// /// A cluster with Namespaces of all names, ConfigMaps called `limits`, and no rights.
/// #[derive(Debug)]
/// struct Bare;
///
/// impl Host for Bare {
///     fn namespace(&self, name: &str) -> Result<Option<Arc<Value>>, HostError> {
///         Ok(Some(Arc::new(json!({"metadata": {"name": name}}))))
///     }
///
///     fn param_scope(&self, kind: &GroupVersionKind) -> Option<Scope> {
///         (kind.kind == "ConfigMap").then_some(Scope::Namespaced)
///     }
///
///     fn params(&self, _: &GroupVersionKind, namespace: &str) -> Result<Vec<Arc<Value>>, HostError> {
///         Ok(vec![Arc::new(json!({"metadata": {"name": "limits", "namespace": namespace}, "data": {"most": "3"}}))])
///     }
///
///     fn equivalents(&self, _: &GroupVersionResource, _: &str) -> Vec<(GroupVersionResource, GroupVersionKind)> {
///         Vec::new()
///     }
///
///     fn convert(&self, _: &Value, kind: &GroupVersionKind) -> Result<Value, HostError> {
///         Err(HostError(format!("{} is served in one version", kind.kind)))
///     }
///
///     fn authorize(&self, _: &UserInfo, _: &AccessAttributes) -> Result<Access, HostError> {
///         Ok(Access { allowed: false, reason: "nobody may do anything".to_owned() })
///     }
/// }
///
/// let kind = GroupVersionKind::new("", "v1", "ConfigMap");
/// assert_eq!(Bare.params_named(&kind, "shop", "limits")?.len(), 1);
/// assert!(Bare.params_named(&kind, "shop", "other")?.is_empty());
/// assert_eq!(Bare.now(), None, "no exception is in force");
/// assert!(Bare.exceptions()?.is_none());
/// # Ok::<(), HostError>(())
/// ```
pub trait Host: Sync + std::fmt::Debug {
    /// Returns the Namespace object of that name, `None` if there is none.
    fn namespace(&self, name: &str) -> Result<Option<Arc<Value>>, HostError>;

    /// Whether objects of a param kind live in namespaces; `None` if the kind is unknown.
    fn param_scope(&self, kind: &GroupVersionKind) -> Option<Scope>;

    /// The params of `kind` in `namespace` (empty for cluster-scoped kinds), in order of name.
    fn params(&self, kind: &GroupVersionKind, namespace: &str) -> Result<Vec<Arc<Value>>, HostError>;

    /// Returns the params with that name: one, if it exists. An implementation should not scan the others.
    ///
    /// # Errors
    /// As [`Self::params`].
    fn params_named(
        &self,
        kind: &GroupVersionKind,
        namespace: &str,
        name: &str,
    ) -> Result<Vec<Arc<Value>>, HostError> {
        let mut params = self.params(kind, namespace)?;
        params.retain(|param| param.pointer("/metadata/name").and_then(Value::as_str) == Some(name));
        Ok(params)
    }

    /// The other versions under which `resource` is served, with the kind served at each.
    fn equivalents(
        &self,
        resource: &GroupVersionResource,
        subresource: &str,
    ) -> Vec<(GroupVersionResource, GroupVersionKind)>;

    /// `object` in the version of `kind`, one of its equivalents.
    fn convert(&self, object: &Value, kind: &GroupVersionKind) -> Result<Value, HostError>;

    /// Whether `user` may do what `attributes` say.
    fn authorize(&self, user: &UserInfo, attributes: &AccessAttributes) -> Result<Access, HostError>;

    /// Returns the exceptions of the cluster; None without a cluster, or if exceptions are not supported.
    ///
    /// # Errors
    /// If they are not known: then none applies, and a denied user is told so.
    fn exceptions(&self) -> Result<Option<Arc<Exceptions>>, HostError> {
        Ok(None)
    }

    /// Returns when the request is decided, or was made, since exceptions end. If unknown, none applies.
    fn now(&self) -> Option<SystemTime> {
        None
    }
}

/// Whether objects of a kind are namespaced or cluster-scoped.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Scope {
    Namespaced,
    Cluster,
}

/// The request for which an authorizer is consulted.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum AccessAttributes {
    /// A URL path that is no resource, with an HTTP verb.
    Path { verb: String, path: String },
    Resource {
        verb: String,
        group: String,
        version: String,
        resource: String,
        subresource: String,
        namespace: String,
        name: String,
        /// Serialised field selector, empty for none.
        field_selector: String,
        /// Serialised label selector, empty for none.
        label_selector: String,
    },
}

/// An authorizer's answer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Access {
    pub allowed: bool,
    pub reason: String,
}

/// The environment could not answer.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("{0}")]
pub struct HostError(pub String);
