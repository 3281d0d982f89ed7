//! Holds the state of the collectors' Deployments and of Prometheus' Service, as last reported by watches.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::stream::{BoxStream, select_all};
use futures::{Stream, StreamExt};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::{Config, Event};
use kube::{Api, Client, ResourceExt};

use super::plan::{Collector, Deployed};
use super::{DEPLOYMENTS, EndpointSettings};
use crate::controllers::kit::watch;

/// The state; clones share it.
#[derive(Clone, Debug, Default)]
pub(in crate::controllers::observability) struct Workloads(Arc<Mutex<Known>>);

#[derive(Debug, Default)]
struct Known {
    collectors: [Deployed; 2],
    /// None while it is unknown.
    prometheus: Option<bool>,
}

impl Workloads {
    pub(super) fn deployed(&self, collector: Collector) -> Deployed {
        match (&self.known().collectors, collector) {
            ([platform, _], Collector::Platform) => platform.clone(),
            ([_, workloads], Collector::Workloads) => workloads.clone(),
        }
    }

    pub(super) fn prometheus(&self) -> Option<bool> {
        self.known().prometheus
    }

    /// Watches them for the add-on in `namespace`; yields an item after each change.
    pub(in crate::controllers::observability) fn follow(
        &self,
        client: &Client,
        namespace: &str,
        settings: &EndpointSettings,
    ) -> impl Stream<Item = ()> + Send + use<> {
        let mut heard: Vec<BoxStream<'static, ()>> = Vec::new();
        for (collector, name) in Collector::ALL.into_iter().zip(DEPLOYMENTS) {
            let api: Api<Deployment> = Api::namespaced(client.clone(), namespace);
            let known = self.clone();
            let events = watch::events(api, named(name));
            heard.push(events.map(move |event| known.hear(collector, event)).boxed());
        }
        if let Some((namespace, name)) = &settings.prometheus {
            let api: Api<PartialObjectMeta<Service>> = Api::namespaced(client.clone(), namespace);
            let known = self.clone();
            heard.push(watch::events(api, named(name)).map(move |event| known.hear_service(&event)).boxed());
        }
        select_all(heard)
    }

    fn hear(&self, collector: Collector, event: Event<Deployment>) {
        let mut known = self.known();
        let [platform, workloads] = &mut known.collectors;
        let slot = match collector {
            Collector::Platform => platform,
            Collector::Workloads => workloads,
        };
        match event {
            // A list begins: before its end, missing objects are not known to be deleted.
            Event::Init => {}
            Event::InitApply(deployment) | Event::Apply(deployment) => *slot = deployed(&deployment),
            Event::InitDone if *slot == Deployed::NotKnown => *slot = Deployed::Absent,
            Event::InitDone => {}
            Event::Delete(_) => *slot = Deployed::Absent,
        }
    }

    fn hear_service(&self, event: &Event<PartialObjectMeta<Service>>) {
        let mut known = self.known();
        match event {
            Event::Init => {}
            Event::InitApply(_) | Event::Apply(_) => known.prometheus = Some(true),
            Event::InitDone => drop(known.prometheus.get_or_insert(false)),
            Event::Delete(_) => known.prometheus = Some(false),
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn named(name: &str) -> Config {
    Config::default().fields(&format!("metadata.name={name}"))
}

/// Returns the state of a Deployment; its status counts only for the observed generation.
fn deployed(deployment: &Deployment) -> Deployed {
    let generation = deployment.metadata.generation.unwrap_or_default();
    let version = format!("{}.{generation}", deployment.uid().unwrap_or_default());
    let Some(status) = &deployment.status else { return Deployed::Runs(version) };
    let conditions = status.conditions.as_deref().unwrap_or_default();
    let is = |type_: &str, truth: &str| conditions.iter().any(|it| it.type_ == type_ && it.status == truth);
    let looked_at = status.observed_generation.unwrap_or_default() >= generation;
    if looked_at && (is("ReplicaFailure", "True") || is("Progressing", "False")) {
        Deployed::Fails(version)
    } else {
        Deployed::Runs(version)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_failure_of_an_older_version_is_none_of_the_newer() {
        let of = |generation: i64, observed: i64, type_: &str, status: &str| {
            let condition = json!({"type": type_, "status": status});
            let deployment = serde_json::from_value(json!({
                "metadata": {"uid": "u", "generation": generation},
                "status": {"observedGeneration": observed, "conditions": [condition]},
            }));
            deployed(&deployment.unwrap())
        };
        let (runs, fails) = (Deployed::Runs("u.2".to_owned()), Deployed::Fails("u.2".to_owned()));
        assert_eq!(of(2, 2, "Progressing", "False"), fails);
        assert_eq!(of(2, 2, "ReplicaFailure", "True"), fails);
        assert_eq!(of(2, 1, "ReplicaFailure", "True"), runs);
        assert_eq!(of(2, 2, "Progressing", "True"), runs);
        assert_eq!(of(2, 2, "Available", "False"), runs, "not yet, which says nothing");
    }
}
