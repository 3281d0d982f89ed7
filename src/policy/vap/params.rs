//! Finds the params that a binding evaluates a policy with.

use std::sync::Arc;

use serde_json::Value;
use thiserror::Error;

use super::binding::{Binding, NotFoundAction, ParamRef, ParamSelector};
use super::policy::Policy;
use crate::request::Request;
use crate::request::host::{Host, HostError, Scope};

/// What to evaluate with.
pub(super) enum Params {
    /// Once, without params.
    Without,
    /// The policy is evaluated once with each; never if there is none.
    Each(Vec<Arc<Value>>),
}

impl Params {
    /// Whether the policy is not evaluated at all.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Without => false,
            Self::Each(params) => params.is_empty(),
        }
    }
}

/// Params that cannot be collected.
#[derive(Debug, Error)]
pub(super) enum ParamError {
    #[error("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources")]
    NoNamespace,
    #[error("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")]
    NamespaceOfClusterScoped,
    #[error("no params found for policy binding with `Deny` parameterNotFoundAction")]
    NotFound,
    #[error("{0}")]
    Host(#[from] HostError),
}

/// Collects the params that `binding` selects. If there is none, the binding is skipped.
pub(super) fn collect(
    policy: &Policy,
    binding: &Binding,
    scope: Option<Scope>,
    request: &Request<'_>,
    host: &dyn Host,
) -> Result<Params, ParamError> {
    let (Some(kind), Some(param_ref)) = (&policy.param_kind, &binding.param_ref) else {
        return Ok(Params::Without);
    };
    let namespace = match scope {
        Some(Scope::Cluster) if !param_ref.namespace.is_empty() => {
            return Err(ParamError::NamespaceOfClusterScoped);
        }
        Some(Scope::Cluster) => "",
        Some(Scope::Namespaced) | None => namespace_of(param_ref, request)?,
    };
    let chosen = match &param_ref.selector {
        ParamSelector::Name(name) => host.params_named(kind, namespace, name)?,
        ParamSelector::Labels(selector) => {
            let mut params = host.params(kind, namespace)?;
            params.retain(|param| selector.matches_labels_of(Some(param)));
            params
        }
    };
    if chosen.is_empty() && param_ref.not_found == NotFoundAction::Deny {
        return Err(ParamError::NotFound);
    }
    Ok(Params::Each(chosen))
}

fn namespace_of<'a>(param_ref: &'a ParamRef, request: &'a Request<'_>) -> Result<&'a str, ParamError> {
    [&param_ref.namespace, &request.namespace]
        .into_iter()
        .find(|namespace| !namespace.is_empty())
        .map(String::as_str)
        .ok_or(ParamError::NoNamespace)
}
