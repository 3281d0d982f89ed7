//! Watches the configuration of periodic gatherings, so that a change takes effect at once without polling.
//!
//! It watches the InsightsDataGather `cluster` in the newest served version, as soon as its CRD exists; the Secret `support`
//! and the ConfigMap `insights-config`; and the end of a gathering that another one waits for, which the controller reports
//! itself.

use std::fmt::Debug;
use std::future::ready;
use std::sync::{Arc, Mutex, PoisonError};

use futures::stream::{self, BoxStream, SelectAll};
use futures::{Stream, StreamExt as _};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::DynamicObject;
use kube::core::PartialObjectMeta;
use kube::runtime::conditions::is_crd_established;
use kube::runtime::wait::Condition as _;
use kube::runtime::watcher::{Config, Event};
use kube::{Api, Client, Resource};
use tokio::sync::Notify;

use super::Context;
use super::config::{OWN, SUPPORT};
use super::defaults::{self, KIND, VERSIONS};
use crate::controllers::kit::watch;

/// The CRD of the kind.
const DEFINITION: &str = "insightsdatagathers.config.openshift.io";

/// Triggers a check of periodic gatherings.
#[derive(Debug, Default)]
pub struct Changes {
    pub(super) woken: Arc<Notify>,
    /// The gathering whose end is awaited.
    awaited: Mutex<Option<String>>,
}

impl Changes {
    /// Waits for the end of `name` from now on.
    pub(super) fn until_ended(&self, name: &str) {
        *self.awaited() = Some(name.to_owned());
    }

    /// Reports that the gathering has ended, or was deleted.
    pub(super) fn ended(&self, name: &str) {
        if self.awaited().take_if(|awaited| awaited == name).is_some() {
            self.woken.notify_one();
        }
    }

    fn awaited(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.awaited.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Watches for ever.
pub(super) async fn follow(context: &Context) {
    let (client, settings) = (&context.client, context.settings());
    let mut told: SelectAll<BoxStream<'static, ()>> = SelectAll::new();
    told.push(choices(client.clone()).boxed());
    if settings.follow_cluster {
        told.push(named_so::<Secret>(client, SUPPORT.0, SUPPORT.1));
        told.push(named_so::<ConfigMap>(client, &settings.namespace, OWN));
    }
    let woken = &context.changes.woken;
    told.for_each(|()| {
        woken.notify_one();
        ready(())
    })
    .await;
}

/// Watches a namespaced object for changes; its contents are ignored.
fn named_so<K>(client: &Client, namespace: &str, name: &str) -> BoxStream<'static, ()>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + Send
        + Sync
        + serde::de::DeserializeOwned
        + 'static,
{
    let api: Api<PartialObjectMeta<K>> = Api::namespaced(client.clone(), namespace);
    changes(watch::events(api, named(name)))
}

fn named(name: &str) -> Config {
    Config::default().fields(&format!("metadata.name={name}"))
}

/// Returns a trigger after a list was read, and for each change.
fn changes<K: Send + 'static>(
    events: impl Stream<Item = Event<K>> + Send + 'static,
) -> BoxStream<'static, ()> {
    let due =
        |event| ready(matches!(event, Event::InitDone | Event::Apply(_) | Event::Delete(_)).then_some(()));
    events.filter_map(due).boxed()
}

/// Watches the InsightsDataGather, and which version is served.
fn choices(client: Client) -> impl Stream<Item = ()> + Send {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let definitions = watch::events(definitions, named(DEFINITION)).boxed();
    let objects = stream::pending().boxed();
    let following = (definitions, objects, Served::default(), client);
    stream::unfold(following, |(mut definitions, mut objects, mut served, client)| async move {
        loop {
            tokio::select! {
                event = definitions.next() => {
                    if !served.hear(&event?) {
                        continue;
                    }
                    objects = served.version.map_or_else(|| stream::pending().boxed(), |version| of(&client, version));
                }
                Some(()) = objects.next() => {}
            }
            return Some(((), (definitions, objects, served, client)));
        }
    })
}

fn of(client: &Client, version: &str) -> BoxStream<'static, ()> {
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &defaults::resource(version));
    changes(watch::events_of(api, named(defaults::NAME), KIND.to_owned()))
}

/// The served version of the kind.
#[derive(Default)]
struct Served {
    version: Option<&'static str>,
    /// Whether the current list contains the CRD.
    listed: bool,
}

impl Served {
    /// Handles an event of the CRD; returns whether the version has changed.
    fn hear(&mut self, event: &Event<CustomResourceDefinition>) -> bool {
        let now = match event {
            Event::Init => {
                self.listed = false;
                return false;
            }
            Event::InitApply(definition) => {
                self.listed = true;
                newest(definition)
            }
            Event::InitDone if self.listed => return false,
            Event::Apply(definition) => newest(definition),
            Event::InitDone | Event::Delete(_) => None,
        };
        std::mem::replace(&mut self.version, now) != now
    }
}

fn newest(definition: &CustomResourceDefinition) -> Option<&'static str> {
    if !is_crd_established().matches_object(Some(definition)) {
        return None;
    }
    let is_served =
        |name: &&str| definition.spec.versions.iter().any(|version| version.served && version.name == **name);
    VERSIONS.into_iter().find(is_served)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn definition(versions: &[(&str, bool)], established: &str) -> CustomResourceDefinition {
        let version =
            |(name, served): &(&str, bool)| json!({"name": name, "served": served, "storage": false});
        serde_json::from_value(json!({
            "metadata": {"name": DEFINITION},
            "spec": {"group": "config.openshift.io", "scope": "Cluster", "names": {"kind": KIND, "plural": "x"},
                "versions": versions.iter().map(version).collect::<Vec<_>>()},
            "status": {"conditions": [{"type": "Established", "status": established}]},
        }))
        .unwrap()
    }

    #[test]
    fn the_newest_version_that_is_served_is_watched() {
        let mut served = Served::default();
        let mut hear = |event| {
            let changed = served.hear(&event);
            (changed, served.version)
        };
        assert_eq!(hear(Event::Init), (false, None));
        assert_eq!(hear(Event::InitDone), (false, None));
        assert_eq!(hear(Event::Apply(definition(&[("v1alpha1", true)], "False"))), (false, None));
        assert_eq!(hear(Event::Apply(definition(&[("v1alpha1", true)], "True"))), (true, Some("v1alpha1")));
        let both =
            || definition(&[("v1alpha1", true), ("v1alpha2", true), ("v1", false), ("v2", true)], "True");
        assert_eq!(hear(Event::Apply(both())), (true, Some("v1alpha2")));
        // The watch breaks without a change; then the CRD is deleted while it is broken.
        assert_eq!(hear(Event::Init), (false, Some("v1alpha2")));
        assert_eq!(hear(Event::InitApply(both())), (false, Some("v1alpha2")));
        assert_eq!(hear(Event::InitDone), (false, Some("v1alpha2")));
        assert_eq!(hear(Event::Init), (false, Some("v1alpha2")));
        assert_eq!(hear(Event::InitDone), (true, None));
        assert_eq!(hear(Event::Apply(both())), (true, Some("v1alpha2")));
        assert_eq!(hear(Event::Delete(both())), (true, None));
    }

    #[tokio::test]
    async fn the_end_that_is_awaited_is_told_once() {
        let changes = Changes::default();
        changes.until_ended("a");
        changes.ended("b");
        assert!(futures::FutureExt::now_or_never(changes.woken.notified()).is_none());
        changes.ended("a");
        changes.woken.notified().await;
        changes.ended("a");
        assert!(futures::FutureExt::now_or_never(changes.woken.notified()).is_none());
    }
}
