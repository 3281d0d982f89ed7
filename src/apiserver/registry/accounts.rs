//! Creates in each namespace what pods need: the service account `default`, and the ConfigMap with the server's CA.
//! In a cluster, controllers create them a moment after the namespace; here they are created before the response to the
//! namespace's creation, so that pods can follow at once, and again when they are removed; the ConfigMap is updated when the
//! CA changes.

use std::sync::Arc;

use futures::future::{BoxFuture, join_all};
use serde_json::{Value, json};

use super::Registry;
use super::field_ownership::Ownership;
use super::update::Change;
use crate::call::{Call, WriteOptions};
use crate::codec::recheck;
use crate::identity::{Identity, MASTERS};
use crate::object;
use crate::status::Refusal;
use crate::store::Key;

const NAMESPACES: &str = "namespaces";
const ACCOUNTS: &str = "serviceaccounts";
const MAPS: &str = "configmaps";
const ACCOUNT: &str = "default";
const ROOT_CA: &str = "kube-root-ca.crt";
const ABOUT_ROOT_CA: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints \
                             such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed \
                             across distributions of Kubernetes clusters.";
/// The field manager of these objects, as in a cluster.
const MANAGER: &str = "kube-controller-manager";

/// Says which of these objects are created.
#[derive(Clone, Debug, Default)]
pub(super) struct Accounts {
    on: bool,
    root_ca: Option<String>,
}

impl Accounts {
    pub(super) fn new(on: bool, root_ca: Option<String>) -> Self {
        Self { on, root_ca }
    }

    /// Returns the objects for a namespace: plural, name, content, and the controller that creates it in a cluster.
    fn of(&self, namespace: &str) -> Vec<(&'static str, &'static str, Value, &'static str)> {
        let mut objects = Vec::new();
        if self.on {
            let account = json!({"apiVersion": "v1", "kind": "ServiceAccount",
                "metadata": {"name": ACCOUNT, "namespace": namespace}});
            objects.push((ACCOUNTS, ACCOUNT, account, "service-account-controller"));
        }
        if let Some(certificate) = &self.root_ca {
            let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
                "name": ROOT_CA, "namespace": namespace,
                "annotations": {"kubernetes.io/description": ABOUT_ROOT_CA},
            }, "data": {"ca.crt": certificate}});
            objects.push((MAPS, ROOT_CA, map, "root-ca-cert-publisher"));
        }
        objects
    }
}

impl Registry {
    /// Creates what is missing in all namespaces.
    pub(crate) async fn create_accounts(&self) {
        let kept = self.stored_objects(NAMESPACES, None);
        let namespaces: Vec<_> =
            kept.iter().map(|kept| object::name(&kept.object.head()).to_owned()).collect();
        // Written concurrently, so that a durable store commits them together.
        join_all(namespaces.iter().map(|namespace| self.create_accounts_of(namespace))).await;
    }

    /// Creates missing objects of a namespace after a write or removal that concerns them.
    pub(super) async fn settle_accounts(&self, call: &Call, name: &str) {
        match (call.info.storage_key.as_str(), name) {
            (NAMESPACES, name) => self.create_accounts_of(name).await,
            (ACCOUNTS, ACCOUNT) | (MAPS, ROOT_CA) => self.create_accounts_of(&call.namespace).await,
            _ => {}
        }
    }

    /// Creates what is missing in a namespace. Boxed, since it follows a write and makes others.
    fn create_accounts_of<'r>(&'r self, namespace: &'r str) -> BoxFuture<'r, ()> {
        Box::pin(async move {
            let key =
                Key { resource: NAMESPACES.into(), namespace: String::new(), name: namespace.to_owned() };
            let objects = self.accounts.of(namespace);
            if objects.is_empty()
                || self.store.latest(&key).is_none_or(|one| object::is_terminating(&one.object))
            {
                return;
            }
            for (plural, name, object, controller) in objects {
                if let Err(refusal) = self.create_own(plural, (namespace, name), object, controller).await {
                    tracing::warn!(%refusal, namespace, name, "not made; pods of the namespace may need it");
                }
            }
        })
    }

    /// Creates an object as a controller of a cluster does, or restores its data.
    async fn create_own(
        &self,
        plural: &str,
        (namespace, name): (&str, &str),
        object: Value,
        controller: &str,
    ) -> Result<(), Refusal> {
        let served = self.served();
        let Some(info) = served.table.find("", "v1", plural) else { return Ok(()) };
        let account = format!("system:serviceaccount:kube-system:{controller}");
        let identity = Identity::new(account, [MASTERS.to_owned()]);
        // Webhooks and policies are skipped: the creation of a namespace should not wait for an unreachable webhook.
        let call = Call { identity, ..self.own_call(info, namespace) }.admitted();
        let options = WriteOptions::of(MANAGER);
        if let Some(stored) = self.store.latest(&call.key(name)) {
            let data = object.get("data");
            if stored.object.get("data") == data {
                return Ok(());
            }
            // The CA has changed, or a client wrote data that does not match this server.
            let make = |live: &mut Arc<Value>| {
                let mut next = (**live).clone();
                object::set_field(&mut next, "data", data.cloned());
                Ok(next)
            };
            let change = Change { make: &make, uid_is_precondition: false, ownership: Ownership::Tracked };
            return self.change(&call, name, &change, &options).await.map(drop);
        }
        let received = recheck(&call.info, None, object).map_err(|why| why.refusal(Refusal::internal))?;
        match self.create(&call, received.object, &options).await {
            Err(refusal) if refusal.reason() != "AlreadyExists" => Err(refusal),
            _ => Ok(()),
        }
    }
}
