//! The default RBAC roles and bindings of every cluster, created at start. Existing ones are not changed.

use std::sync::Arc;

use futures::future::join_all;
use serde_json::Value;

use super::Registry;
use crate::call::{Call, WriteOptions};
use crate::codec::{self, Body, Format};
use crate::conversion::Conversions;
use crate::emptied::Emptied;
use crate::identity::Identity;
use crate::object;
use crate::status::Refusal;
use crate::warning::Warnings;

static DEFAULTS: [&str; 2] =
    [include_str!("bootstrap_policy.yaml"), include_str!("bootstrap_components.yaml")];

impl Registry {
    /// # Errors
    /// When the store does not take one of them.
    pub(crate) async fn create_default_roles(&self) -> Result<(), Refusal> {
        let served = self.served();
        // Written at once: a durable store then commits them together.
        let creations = defaults().into_iter().filter_map(|object| {
            let kind = object.get("kind").and_then(Value::as_str)?;
            let info = served.table.find_kind("rbac.authorization.k8s.io", "v1", kind)?;
            Some(self.create_default(Arc::clone(info), object))
        });
        join_all(creations).await.into_iter().collect()
    }

    async fn create_default(
        &self,
        info: Arc<crate::resources::ResourceInfo>,
        mut object: Value,
    ) -> Result<(), Refusal> {
        let call = Call {
            info,
            custom: None,
            namespace: object::namespace(&object).to_owned(),
            subresource: None,
            identity: Identity::admin(),
            warnings: Warnings::default(),
            emptied: Emptied::default(),
            conversions: Conversions::default(),
            clock: self.clock.clone(),
            admitted: false,
        };
        if self.store.latest(&call.key(object::name(&object))).is_some() {
            return Ok(());
        }
        let labels = object::member_mut(object::meta_mut(&mut object), "labels");
        labels.insert("kubernetes.io/bootstrapping".to_owned(), "rbac-defaults".into());
        let annotations = object::member_mut(object::meta_mut(&mut object), "annotations");
        annotations.insert("rbac.authorization.kubernetes.io/autoupdate".to_owned(), "true".into());
        let received =
            codec::recheck(&call.info, None, object).map_err(|why| why.refusal(Refusal::internal))?;
        match self.create(&call, received.object, &WriteOptions::own()).await {
            Err(refusal) if refusal.reason() != "AlreadyExists" => Err(refusal),
            _ => Ok(()),
        }
    }
}

fn defaults() -> Vec<Value> {
    DEFAULTS.into_iter().flat_map(read).collect()
}

/// The objects of a list.
pub(super) fn read(list: &'static str) -> Vec<Value> {
    let body = Body { format: Format::Yaml, bytes: list.into() };
    match codec::parse(&body).map(|document| document.value) {
        Ok(Value::Array(objects)) => objects,
        _ => Vec::new(),
    }
}

#[test]
fn every_default_binding_refers_to_a_default_role() {
    let all = defaults();
    let has = |reference: &Value| {
        all.iter().any(|object| {
            object["kind"] == reference["kind"] && object["metadata"]["name"] == reference["name"]
        })
    };
    let bindings: Vec<&Value> = all.iter().filter(|object| object.get("roleRef").is_some()).collect();
    assert!(bindings.len() > 4 && bindings.iter().all(|binding| has(&binding["roleRef"])));
}
