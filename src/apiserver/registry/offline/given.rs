//! Presents given objects to plugins as a cluster.

use std::sync::Arc;

use admit_policy::{
    Access, AccessAttributes, GroupVersionKind, Host, HostError, Operation, Request, Schemas, Unmade,
    UserInfo,
};
use futures::future::BoxFuture;
use serde_json::Value;

use crate::admission::Cluster;
use crate::conversion::Webhook;
use crate::identity::Identity;
use crate::object;
use crate::objects::Objects;
use crate::registry::bootstrap_priorities;
use crate::registry::builtin_kinds::{TABLE, call_about, read_back};
use crate::resources::{ResourceInfo, ResourceTable, Scope};
use crate::status::Refusal;
use crate::store::{Kept, Key, StoreError, Stored};

/// The objects of a host, in the form in which a server stores them.
#[derive(Debug)]
pub(super) struct Given<'h> {
    host: &'h dyn Host,
    /// The key of the object that is about to be created: it may be among the given objects, but does not exist yet.
    absent: Option<Key>,
}

impl<'h> Given<'h> {
    /// Presents the objects as they are before the request.
    pub(super) fn of(host: &'h dyn Host, request: &Request<'_>) -> Self {
        let resource = &request.resource;
        let info = TABLE.find(&resource.group, &resource.version, &resource.resource);
        let created = info.filter(|_| request.operation == Operation::Create);
        let absent = created.map(|info| Key {
            resource: info.storage_key.as_str().into(),
            namespace: if info.scope == Scope::Namespaced {
                request.namespace.clone()
            } else {
                String::new()
            },
            name: request.name.clone(),
        });
        Self { host, absent }
    }

    /// Returns the objects of a resource in a namespace (empty: cluster scope), or only the one of the given name.
    pub(super) fn found(&self, storage_key: &str, namespace: &str, name: Option<&str>) -> Vec<Arc<Value>> {
        let rows = TABLE.rows().iter().filter(|row| row.builtin && row.storage_key == storage_key);
        let of_row = |info: &Arc<ResourceInfo>| {
            let kind = GroupVersionKind::new(&*info.group, &*info.version, &*info.kind);
            let there = match name {
                // A namespace may be known by name only, and is read often: it has no defaults that matter.
                Some(name) if storage_key == "namespaces" => {
                    return self.host.namespace(name).ok().flatten().into_iter().collect();
                }
                Some(name) => self.host.params_named(&kind, namespace, name),
                None => self.host.params(&kind, namespace),
            };
            let there = there.unwrap_or_default();
            if there.is_empty() {
                return there;
            }
            let call = call_about(info, namespace.to_owned(), None, Identity::admin());
            there.iter().map(|object| Arc::new(read_back(&call, object))).collect()
        };
        let is_absent = |object: &Value| {
            self.absent.as_ref().is_some_and(|absent| {
                (&*absent.resource, absent.namespace.as_str(), absent.name.as_str())
                    == (storage_key, namespace, object::name(object))
            })
        };
        rows.flat_map(of_row).filter(|object| !is_absent(object)).collect()
    }
}

impl Objects for Given<'_> {
    fn object(&self, key: &Key) -> Option<Kept> {
        self.latest_object(key).map(|stored| Kept::alone(Arc::unwrap_or_clone(stored.object)))
    }

    fn latest_object(&self, key: &Key) -> Option<Stored> {
        let found = self.found(&key.resource, &key.namespace, Some(&key.name)).pop();
        let is_class = &*key.resource == "priorityclasses";
        let known = || bootstrap_priorities::named(&key.name).filter(|_| is_class).map(Arc::new);
        found.or_else(known).map(|object| Stored { revision: 0, object })
    }

    fn each_object(
        &self,
        storage_key: &str,
        namespace: Option<&str>,
        each: &mut dyn FnMut(&Kept),
    ) -> Result<(), StoreError> {
        let found = self.found(storage_key, namespace.unwrap_or_default(), None);
        found.into_iter().map(Arc::unwrap_or_clone).map(Kept::alone).for_each(|kept| each(&kept));
        Ok(())
    }

    fn resources(&self) -> Arc<ResourceTable> {
        Arc::clone(&TABLE)
    }
}

impl Cluster for Given<'_> {
    fn converter(&self, _: &ResourceInfo) -> Option<Arc<Webhook>> {
        None
    }

    fn access(&self, user: &UserInfo, attributes: &AccessAttributes) -> Access {
        let unknown = |error: HostError| Access { allowed: false, reason: error.to_string() };
        self.host.authorize(user, attributes).unwrap_or_else(unknown)
    }

    fn make_namespace<'r>(&'r self, name: &'r str) -> BoxFuture<'r, Result<(), Refusal>> {
        let why = format!("namespace {name} cannot be made: there is no cluster");
        Box::pin(async { Err(Refusal::internal(why)) })
    }

    fn schemas(&self) -> &dyn Schemas {
        self
    }
}

/// Unused, as plugins need no schemas and mutating policies run elsewhere.
impl Schemas for Given<'_> {
    fn serves(&self, _: &GroupVersionKind) -> bool {
        false
    }

    fn merged(&self, kind: &GroupVersionKind, _: &Value, _: &Value) -> Result<Value, Unmade> {
        Err(unasked(kind))
    }

    fn settled(&self, kind: &GroupVersionKind, _: Value, _: bool) -> Result<Value, Unmade> {
        Err(unasked(kind))
    }
}

fn unasked(kind: &GroupVersionKind) -> Unmade {
    Unmade::Failed(format!("plugins ask for no schema, and not for that of {}", kind.kind))
}
