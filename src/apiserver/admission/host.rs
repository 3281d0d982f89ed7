//! Answers what policies and matching ask of their environment (namespaces, params, access) from the store.

use std::sync::Arc;

use admit_policy::matching::builtin;
use admit_policy::{
    Access, AccessAttributes, GroupVersionKind, GroupVersionResource, Host, HostError, Scope, UserInfo,
};
use serde_json::Value;

use super::Cluster;
use crate::conversion::{Conversions, version_of};
use crate::object;
use crate::resources;
use crate::store::{Kept, Key};

/// Objects that a webhook must convert are recorded, and are there when the evaluation runs again ([`Conversions::provide`]).
#[derive(Clone, Copy, Debug)]
pub(super) struct StoreHost<'r> {
    pub(super) cluster: &'r dyn Cluster,
    pub(super) conversions: &'r Conversions,
}

impl Host for StoreHost<'_> {
    fn namespace(&self, name: &str) -> Result<Option<Arc<Value>>, HostError> {
        let key = Key { resource: "namespaces".into(), namespace: String::new(), name: name.to_owned() };
        Ok(self.cluster.latest_object(&key).map(|stored| stored.object))
    }

    fn param_scope(&self, kind: &GroupVersionKind) -> Option<Scope> {
        let served = self.cluster.resources();
        let info = served.find_kind(&kind.group, &kind.version, &kind.kind)?;
        Some(match info.scope {
            resources::Scope::Namespaced => Scope::Namespaced,
            resources::Scope::Cluster => Scope::Cluster,
        })
    }

    fn params(&self, kind: &GroupVersionKind, namespace: &str) -> Result<Vec<Arc<Value>>, HostError> {
        let served = self.cluster.resources();
        let Some(info) = served.find_kind(&kind.group, &kind.version, &kind.kind) else {
            return Ok(Vec::new());
        };
        let namespace = Some(namespace).filter(|_| info.scope == resources::Scope::Namespaced);
        let mut items: Vec<Kept> = Vec::new();
        self.cluster
            .each_object(&info.storage_key, namespace, &mut |kept| items.push(kept.clone()))
            .map_err(|error| HostError(error.to_string()))?;
        // All are read even if one is missing, so that all missing conversions are requested at once.
        let seen: Vec<_> = items.iter().map(|kept| self.in_version(kept, kind)).collect();
        seen.into_iter().collect()
    }

    fn params_named(
        &self,
        kind: &GroupVersionKind,
        namespace: &str,
        name: &str,
    ) -> Result<Vec<Arc<Value>>, HostError> {
        let served = self.cluster.resources();
        let Some(info) = served.find_kind(&kind.group, &kind.version, &kind.kind) else {
            return Ok(Vec::new());
        };
        let namespace = if info.scope == resources::Scope::Namespaced { namespace } else { "" };
        let resource = info.storage_key.as_str().into();
        let kept =
            self.cluster.object(&Key { resource, namespace: namespace.to_owned(), name: name.to_owned() });
        kept.iter().map(|kept| self.in_version(kept, kind)).collect()
    }

    fn equivalents(
        &self,
        resource: &GroupVersionResource,
        subresource: &str,
    ) -> Vec<(GroupVersionResource, GroupVersionKind)> {
        let builtin = builtin::equivalents(resource, subresource);
        if !builtin.is_empty() {
            return builtin;
        }
        let served = self.cluster.resources();
        let others = served
            .versions(&resource.group, &resource.resource)
            .filter(|info| info.version != resource.version);
        others
            .map(|info| {
                (
                    GroupVersionResource::new(&info.group, &info.version, &info.plural),
                    match subresource {
                        "scale" => {
                            GroupVersionKind::new(resources::SCALE.0, resources::SCALE.1, resources::SCALE.2)
                        }
                        _ => GroupVersionKind::new(&info.group, &info.version, &info.kind),
                    },
                )
            })
            .collect()
    }

    fn convert(&self, object: &Value, kind: &GroupVersionKind) -> Result<Value, HostError> {
        if let Some(converted) = builtin::convert(object, kind) {
            return Ok(converted);
        }
        let served = self.cluster.resources();
        let info = served.find_kind(&kind.group, &kind.version, &kind.kind);
        let webhook = info.and_then(|info| self.cluster.converter(info));
        if let Some(webhook) = webhook.filter(|_| version_of(object) != kind.api_version()) {
            let converted = self.conversions.of(&webhook, object, &kind.api_version());
            return converted.map(Arc::unwrap_or_clone).map_err(|failed| HostError(failed.to_string()));
        }
        // Without a converter, versions of a resource differ only in the name of the version.
        let mut converted = object.clone();
        object::set_field(&mut converted, "apiVersion", Some(kind.api_version().into()));
        object::set_field(&mut converted, "kind", Some(kind.kind.as_str().into()));
        Ok(converted)
    }

    fn authorize(&self, user: &UserInfo, attributes: &AccessAttributes) -> Result<Access, HostError> {
        Ok(self.cluster.access(user, attributes))
    }
}

impl StoreHost<'_> {
    /// Returns a param in the version that the policy names.
    fn in_version(&self, kept: &Kept, kind: &GroupVersionKind) -> Result<Arc<Value>, HostError> {
        // Params are few, and every request of their policies reads them.
        let object = kept.object.pinned();
        let version = object.get("apiVersion").and_then(Value::as_str);
        if version.is_some_and(|version| version == kind.api_version()) {
            return Ok(object);
        }
        self.convert(&object, kind).map(Arc::new)
    }
}
