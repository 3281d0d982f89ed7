//! What policies and matching may ask of their surroundings, answered from the store.

use std::sync::Arc;

use admit_policy::host::{Access, AccessAttributes, Host, HostError, Scope};
use admit_policy::matching::builtin;
use admit_policy::request::{GroupVersionKind, GroupVersionResource, UserInfo};
use serde_json::Value;

use crate::object;
use crate::registry::Registry;
use crate::resources;
use crate::store::{Kept, Key, Range};

#[derive(Debug)]
pub(super) struct StoreHost<'r>(pub(super) &'r Registry);

impl Host for StoreHost<'_> {
    fn namespace(&self, name: &str) -> Result<Option<Arc<Value>>, HostError> {
        let key = Key { resource: "namespaces".into(), namespace: String::new(), name: name.to_owned() };
        Ok(self.0.store.latest(&key).map(|stored| stored.object))
    }

    fn param_scope(&self, kind: &GroupVersionKind) -> Option<Scope> {
        let served = self.0.served();
        let info = served.table.find_kind(&kind.group, &kind.version, &kind.kind)?;
        Some(match info.scope {
            resources::Scope::Namespaced => Scope::Namespaced,
            resources::Scope::Cluster => Scope::Cluster,
        })
    }

    fn params(&self, kind: &GroupVersionKind, namespace: &str) -> Result<Vec<Arc<Value>>, HostError> {
        let served = self.0.served();
        let Some(info) = served.table.find_kind(&kind.group, &kind.version, &kind.kind) else {
            return Ok(Vec::new());
        };
        let namespace = Some(namespace).filter(|_| info.scope == resources::Scope::Namespaced);
        let range = Range { namespace, ..Range::default() };
        let page = self
            .0
            .store
            .list(&info.storage_key, range, 0, &mut |_| true)
            .map_err(|error| HostError(error.to_string()))?;
        let is_as_asked = |object: &Value| {
            object.get("apiVersion").and_then(Value::as_str).is_some_and(|found| found == kind.api_version())
        };
        let in_version = |kept: Kept| {
            // Params are few, and looked at by every request of their policies.
            let object = kept.object.pinned();
            if is_as_asked(&object) { Ok(object) } else { self.convert(&object, kind).map(Arc::new) }
        };
        page.items.into_iter().map(in_version).collect()
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
        let served = self.0.served();
        let others = served
            .table
            .versions(&resource.group, &resource.resource)
            .filter(|info| info.version != resource.version);
        others
            .map(|info| {
                (
                    GroupVersionResource::new(&info.group, &info.version, &info.plural),
                    match subresource {
                        "scale" => GroupVersionKind::new("autoscaling", "v1", "Scale"),
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
        let served = self.0.served();
        let info = served.table.find_kind(&kind.group, &kind.version, &kind.kind);
        let custom = info.and_then(|info| served.custom_version(info));
        if let Some(compiled) = custom.as_ref().and_then(|custom| custom.compiled.as_ref()) {
            let checked = compiled.check_conversion(object, &kind.api_version());
            checked.map_err(|error| HostError(error.to_string()))?;
        }
        // Versions of one resource differ in nothing but the name of the version.
        let mut converted = object.clone();
        object::set_field(&mut converted, "apiVersion", Some(kind.api_version().into()));
        object::set_field(&mut converted, "kind", Some(kind.kind.as_str().into()));
        Ok(converted)
    }

    fn authorize(&self, user: &UserInfo, attributes: &AccessAttributes) -> Result<Access, HostError> {
        Ok(self.0.access_rules().authorize(user, attributes))
    }
}
