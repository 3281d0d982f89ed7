//! Guarded watches: a watch error is logged and the watch is set up again after a jittered, growing wait; an object
//! that does not decode is a value with a name, not the end of the stream.
//!
//! Deletions are passed on as well, so that a controller hears about objects whose work it must stop.

use std::fmt::Debug;
use std::future::ready;
use std::hash::Hash;

use futures::{Stream, StreamExt};
use k8s_openapi::api::batch::v1::Job;
use kube::core::DeserializeGuard;
use kube::runtime::controller::Controller;
use kube::runtime::{WatchStreamExt, reflector, watcher};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use tracing::warn;

use crate::telemetry::with_causes;

/// A controller over the objects of `api` that `config` selects, fed by a guarded watch. Deleted objects are reconciled once more; they
/// are then missing from the store and show up as `ObjectNotFound` in the controller's stream.
pub fn controller<K>(
    api: Api<DeserializeGuard<K>>,
    config: watcher::Config,
) -> Controller<DeserializeGuard<K>>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Default + Eq + Hash + Clone + Debug + Unpin + Send + Sync,
{
    let (reader, writer) = reflector::store();
    let objects = guarded(api, config, writer);
    Controller::for_stream(objects, reader)
}

/// Reconciles the owner of a Job when the Job changes.
pub fn owned_jobs<K>(
    controller: Controller<DeserializeGuard<K>>,
    client: Client,
    namespace: &str,
) -> Controller<DeserializeGuard<K>>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    let jobs: Api<Job> = Api::namespaced(client, namespace);
    controller.owns(jobs, watcher::Config::default())
}

fn guarded<K>(
    api: Api<DeserializeGuard<K>>,
    config: watcher::Config,
    writer: reflector::store::Writer<DeserializeGuard<K>>,
) -> impl Stream<Item = Result<DeserializeGuard<K>, watcher::Error>> + Send
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Default + Eq + Hash + Clone + Send + Sync,
{
    let kind = K::kind(&K::DynamicType::default()).into_owned();
    watcher(api, config).default_backoff().reflect(writer).touched_objects().filter_map(move |event| {
        // Kept from the controller, which would pause every trigger, also those of running work.
        let object = event.inspect_err(|error| {
            warn!(kind, error = with_causes(error), "watch interrupted, setting it up again");
        });
        ready(object.ok().map(Ok))
    })
}
