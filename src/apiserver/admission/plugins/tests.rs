//! Runs one plugin over objects that lie in a store.

use std::sync::Arc;

use admit_policy::{Access, AccessAttributes, GroupVersionKind, Schemas, Unmade, UserInfo};
use futures::executor::block_on;
use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::{Live, Plugin, Request};
use crate::admission::Cluster;
use crate::admission::review::Review;
use crate::authorization::Authorization;
use crate::call::Call;
use crate::clock::Clock;
use crate::conversion::{Conversions, Webhook};
use crate::emptied::Emptied;
use crate::identity::Identity;
use crate::object;
use crate::objects::Objects;
use crate::resources::{ResourceInfo, ResourceTable, Scope, Subresource, builtin_rows};
use crate::status::Refusal;
use crate::store::{self, Expect, Kept, Key, Store, StoreError};
use crate::warning::Warnings;

/// An object and the plural of its resource.
pub(super) type Placed = (&'static str, Value);

#[derive(Debug)]
struct Stored {
    store: Store,
    resources: Arc<ResourceTable>,
}

impl Cluster for Stored {
    fn converter(&self, _: &ResourceInfo) -> Option<Arc<Webhook>> {
        None
    }

    fn access(&self, user: &UserInfo, attributes: &AccessAttributes) -> Access {
        Authorization::default().access(self, user, attributes)
    }

    fn make_namespace<'r>(&'r self, _: &'r str) -> BoxFuture<'r, Result<(), Refusal>> {
        Box::pin(async { Err(Refusal::internal("nobody makes namespaces here")) })
    }

    fn schemas(&self) -> &dyn Schemas {
        self
    }
}

/// Plugins ask about no schema: there are no policies here that change objects.
impl Schemas for Stored {
    fn serves(&self, _: &GroupVersionKind) -> bool {
        false
    }

    fn merged(&self, kind: &GroupVersionKind, _: &Value, _: &Value) -> Result<Value, Unmade> {
        Err(Unmade::Failed(format!("{kind:?} has no schema here")))
    }

    fn settled(&self, kind: &GroupVersionKind, _: Value, _: bool) -> Result<Value, Unmade> {
        Err(Unmade::Failed(format!("{kind:?} has no schema here")))
    }
}

impl Objects for Stored {
    fn object(&self, key: &Key) -> Option<Kept> {
        self.store.kept(key)
    }

    fn latest_object(&self, key: &Key) -> Option<store::Stored> {
        self.store.latest(key)
    }

    fn each_object(
        &self,
        storage_key: &str,
        namespace: Option<&str>,
        each: &mut dyn FnMut(&Kept),
    ) -> Result<(), StoreError> {
        self.store.all(storage_key, namespace)?.iter().for_each(each);
        Ok(())
    }

    fn resources(&self) -> Arc<ResourceTable> {
        Arc::clone(&self.resources)
    }
}

/// Returns a pod of one container, in the namespace `n`.
pub(super) fn pod() -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "n"},
        "spec": {"containers": [{"name": "c", "image": "i"}]}})
}

/// Returns the member at this path; null if it does not exist yet.
pub(super) fn beside<'o>(object: &'o mut Value, pointer: &str) -> &'o mut Value {
    let (path, last) = pointer.rsplit_once('/').unwrap();
    let owner = if path.is_empty() { object } else { object.pointer_mut(path).unwrap() };
    object::map_of(owner).entry(last).or_insert(Value::Null)
}

/// What is asked of a plugin.
pub(super) struct Asked<'a> {
    pub(super) plural: &'a str,
    pub(super) subresource: Option<Subresource>,
    pub(super) object: &'a Value,
    pub(super) old: Option<&'a Value>,
    pub(super) stored: &'a [Placed],
    pub(super) user: Identity,
}

impl<'a> Asked<'a> {
    pub(super) fn create(plural: &'a str, object: &'a Value, stored: &'a [Placed]) -> Self {
        Self { plural, subresource: None, object, old: None, stored, user: Identity::admin() }
    }

    /// Runs the plugin; returns the changed object, if the plugin changes it, and its warnings.
    pub(super) fn of(&self, plugin: &Plugin) -> Result<(Option<Value>, Vec<String>), Refusal> {
        let cluster =
            Stored { store: Store::in_memory(), resources: Arc::new(ResourceTable::new(builtin_rows(), 1)) };
        for (plural, object) in self.stored {
            let (namespace, name) = (object::namespace(object).to_owned(), object::name(object).to_owned());
            let info = builtin_rows().into_iter().find(|info| info.plural == *plural).unwrap();
            let key = Key { resource: info.storage_key.as_str().into(), namespace, name };
            block_on(cluster.store.put(&key, Expect::Absent, object.clone())).unwrap();
        }
        let info = builtin_rows().into_iter().find(|info| info.plural == self.plural).unwrap();
        let namespaced = info.scope == Scope::Namespaced;
        let warnings = Warnings::default();
        let call = Call {
            info,
            custom: None,
            namespace: if namespaced { "n".to_owned() } else { String::new() },
            subresource: self.subresource,
            identity: self.user.clone(),
            warnings: warnings.clone(),
            emptied: Emptied::default(),
            conversions: Conversions::default(),
            clock: Clock::default(),
            admitted: false,
        };
        let name = object::name(self.object);
        let review = match self.old {
            None => Review::create(&call, name, self.object, false, json!({})),
            Some(old) => Review::update(&call, name, (self.object, old), false, json!({})),
        };
        let live = Live::default();
        let mut request = Request::new(&cluster, &review, &live);
        if let Some(mutate) = plugin.mutate {
            mutate(&mut request)?;
        }
        if let Some(validate) = plugin.validate {
            validate(&request)?;
        }
        Ok((request.into_changed(), warnings.take()))
    }
}

/// Runs the plugin on a new object beside these stored ones; returns the changed object.
pub(super) fn mutated_beside(
    plugin: &Plugin,
    plural: &str,
    object: &Value,
    stored: &[Placed],
) -> Result<Option<Value>, Refusal> {
    Asked::create(plural, object, stored).of(plugin).map(|(changed, _)| changed)
}

pub(super) fn mutated(plugin: &Plugin, plural: &str, object: &Value) -> Result<Option<Value>, Refusal> {
    mutated_beside(plugin, plural, object, &[])
}

/// Returns the message with which the plugin refuses a new object beside these stored ones.
pub(super) fn refused_beside(plugin: &Plugin, plural: &str, object: &Value, stored: &[Placed]) -> String {
    mutated_beside(plugin, plural, object, stored).unwrap_err().message().to_owned()
}

pub(super) fn refused(plugin: &Plugin, plural: &str, object: &Value) -> String {
    refused_beside(plugin, plural, object, &[])
}
