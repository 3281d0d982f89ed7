//! Runs [`admission`](crate::admission) on writes to this registry.

use std::sync::Arc;

use admit_policy::{Access, AccessAttributes, GroupVersionKind, Schemas, Unmade, UserInfo};
use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::Registry;
use crate::admission::{Cluster, Mutated, Review};
use crate::call::{Call, WriteOptions};
use crate::conversion::Webhook;
use crate::object;
use crate::resources::ResourceInfo;
use crate::status::Refusal;

impl Cluster for Registry {
    fn converter(&self, info: &ResourceInfo) -> Option<Arc<Webhook>> {
        self.served().custom_version(info)?.converter.clone()
    }

    fn access(&self, user: &UserInfo, attributes: &AccessAttributes) -> Access {
        self.authorization.access(self, user, attributes)
    }

    fn make_namespace<'r>(&'r self, name: &'r str) -> BoxFuture<'r, Result<(), Refusal>> {
        Box::pin(async move {
            let served = self.served();
            let Some(info) = served.table.find("", "v1", "namespaces") else { return Ok(()) };
            let mut namespace = json!({"apiVersion": "v1", "kind": "Namespace"});
            object::set_meta(&mut namespace, "name", Some(name.into()));
            let call = self.own_call(info, "");
            self.create(&call, namespace, &WriteOptions::own()).await.map(drop)
        })
    }

    fn schemas(&self) -> &dyn Schemas {
        self
    }
}

impl Schemas for Registry {
    fn serves(&self, kind: &GroupVersionKind) -> bool {
        self.knows(kind)
    }

    fn merged(&self, kind: &GroupVersionKind, live: &Value, configuration: &Value) -> Result<Value, Unmade> {
        self.merge(kind, live, configuration)
    }

    fn settled(&self, kind: &GroupVersionKind, object: Value, strict: bool) -> Result<Value, Unmade> {
        self.settle(kind, object, strict)
    }
}

impl Registry {
    /// Runs mutating admission on the object that is to be written; returns None if nothing changes it.
    ///
    /// # Errors
    /// The first refusal.
    pub(super) async fn mutate(&self, review: &Review<'_>) -> Result<Option<Mutated>, Refusal> {
        self.admission.mutate(self, review).await
    }

    /// Runs validating admission. Warnings are added to the call.
    ///
    /// # Errors
    /// The first refusal.
    pub(super) async fn admit(&self, review: &Review<'_>) -> Result<(), Refusal> {
        self.admission.admit(self, review).await
    }

    /// Runs admission on an object that is posted to a subresource and not stored.
    ///
    /// # Errors
    /// The first refusal.
    pub(crate) async fn admitted(
        &self,
        call: &Call,
        name: &str,
        sent: Value,
        options: &WriteOptions,
    ) -> Result<Value, Refusal> {
        let review = Review::create(call, name, &sent, options.dry_run, options.to_value());
        let changed = self.mutate(&review).await?;
        let Some(changed) = changed else { return self.admit(&review).await.map(|()| sent) };
        self.admit(&review.with_object(&changed.object)).await.map(|()| changed.object)
    }
}
