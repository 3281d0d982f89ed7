//! Maintains an APIService for each group and version that is served, created and removed together with it. The API
//! group of APIServices has none: it belongs to the aggregator itself.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{Registry, kinds, storage_version};
use crate::call::{Call, WriteOptions};
use crate::discovery::priority;
use crate::object;
use crate::resources::ResourceInfo;
use crate::store::{Expect, Key, StoreError};

/// The label of APIServices that the server maintains: as long as it runs (`onstart`), or as long as a definition exists (`true`).
pub(super) const MANAGED: &str = "kube-aggregator.kubernetes.io/automanaged";

/// A group, its version, and whether it is built in.
type Version = (String, String, bool);

impl Registry {
    /// Reconciles the APIServices that the server maintains with what it serves.
    pub(crate) async fn register_versions(&self) {
        loop {
            let generation = self.served().table.generation();
            self.register_served().await;
            // What changed meanwhile was registered by the change, perhaps before this step undid it: repeated.
            if self.served().table.generation() == generation {
                return;
            }
        }
    }

    /// Returns whether an APIService delegates this version to another server, which this one cannot reach.
    pub(crate) fn is_served_elsewhere(&self, group: &str, version: &str) -> bool {
        let served = self.served();
        let Some(info) = served.table.find("apiregistration.k8s.io", "v1", "apiservices") else {
            return false;
        };
        let key = self.own_call(info, "").key(&format!("{version}.{group}"));
        let service =
            self.store.latest(&key).and_then(|stored| stored.object.pointer("/spec/service").cloned());
        service.is_some_and(|service| service.is_object())
    }

    async fn register_served(&self) {
        let Some(info) = self.served().table.find("apiregistration.k8s.io", "v1", "apiservices").cloned()
        else {
            return;
        };
        let call = self.own_call(&info, "");
        // Listed first: an APIService in the list belongs to a version that is served already.
        let managed = self.managed(&info);
        let served = self.served();
        let rows = served.table.rows().iter().filter(|row| row.group != info.group);
        let versions: BTreeSet<Version> = rows.map(|row| version_of(row)).collect();
        let missing =
            versions.iter().filter(|version| self.store.latest(&call.key(&name_of(version))).is_none());
        // Written concurrently, so that a durable store commits them together.
        futures::future::join_all(missing.map(|version| self.register(&call, version))).await;
        let names: BTreeSet<String> = versions.iter().map(name_of).collect();
        for (key, revision) in managed.into_iter().filter(|(key, _)| !names.contains(&key.name)) {
            noted(&key.name, self.store.delete_unchanged(&key, revision).await);
        }
    }

    async fn register(&self, call: &Call, version: &Version) {
        let mut object = api_service(version);
        super::create::fill_metadata(call, &mut object);
        kinds::prepare_create(call, &mut object);
        let name = name_of(version);
        let tracked = self.track(call, None, &mut object, &WriteOptions::own());
        let form = tracked.and_then(|()| Ok(storage_version::incoming(call, object)?));
        match form {
            Ok(form) => noted(&name, self.store.put(&call.key(&name), Expect::Absent, form).await),
            Err(refusal) => tracing::error!(?refusal, name, "an APIService has no form to be stored in"),
        }
    }

    /// Returns the APIServices that belong to definitions.
    fn managed(&self, info: &Arc<ResourceInfo>) -> Vec<(Key, u64)> {
        let mut found = Vec::new();
        for kept in self.stored_objects(&info.storage_key, None) {
            let object = kept.object.values();
            if object::label(&object, MANAGED) == Some("true") {
                let key = Key {
                    resource: info.storage_key.as_str().into(),
                    namespace: String::new(),
                    name: object::name(&object).to_owned(),
                };
                found.push((key, kept.revision));
            }
        }
        found
    }
}

/// Logs a failed write: another writer was first, and its object stays.
fn noted<T>(name: &str, written: Result<T, StoreError>) {
    if let Err(error) = written {
        tracing::debug!(%error, name, "an APIService was not written");
    }
}

fn version_of(row: &ResourceInfo) -> Version {
    (row.group.clone(), row.version.clone(), row.builtin)
}

fn name_of((group, version, _): &Version) -> String {
    format!("{version}.{group}")
}

fn api_service((group, version, builtin): &Version) -> Value {
    let managed = if *builtin { "onstart" } else { "true" };
    let own = match (group.as_str(), version.as_str()) {
        _ if !builtin => 100,
        ("", _) => 1,
        ("flowcontrol.apiserver.k8s.io" | "resource.k8s.io", "v1") => 21,
        (_, "v2") => 30,
        _ => 15,
    };
    let mut spec =
        json!({"version": version, "groupPriorityMinimum": priority(group), "versionPriority": own});
    if !group.is_empty() {
        spec["group"] = group.as_str().into();
    }
    json!({
        "kind": "APIService", "apiVersion": "apiregistration.k8s.io/v1",
        "metadata": {"name": format!("{version}.{group}"), "labels": {MANAGED: managed}}, "spec": spec
    })
}
