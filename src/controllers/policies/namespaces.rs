//! The cluster's Namespaces by name.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;

use futures::TryStreamExt;
use k8s_openapi::api::core::v1::Namespace;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, ResourceExt};
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::warn;

type Namespaces = HashMap<String, Arc<Value>>;

/// Watches the Namespaces and publishes every state of them until `shutdown`. A watch that breaks is set up again, and
/// what was published last stays in force meanwhile.
///
/// # Errors
/// Never; the type says so.
pub async fn publish(
    client: Client,
    sender: watch::Sender<Arc<Namespaces>>,
    shutdown: CancellationToken,
) -> Result<(), Infallible> {
    let mut events =
        std::pin::pin!(watcher(Api::<Namespace>::all(client), watcher::Config::default()).default_backoff());
    let mut listing = Namespaces::new();
    loop {
        let event = tokio::select! {
            () = shutdown.cancelled() => return Ok(()),
            event = events.try_next() => event,
        };
        match event {
            Err(error) => warn!(%error, "the watch of namespaces broke and is set up again"),
            // The stream itself does not end.
            Ok(None) => return Ok(()),
            Ok(Some(watcher::Event::Init)) => listing.clear(),
            Ok(Some(watcher::Event::InitApply(namespace))) => insert(&mut listing, &namespace),
            Ok(Some(watcher::Event::InitDone)) => {
                sender.send_replace(Arc::new(std::mem::take(&mut listing)));
            }
            Ok(Some(watcher::Event::Apply(namespace))) => {
                sender.send_modify(|current| insert(Arc::make_mut(current), &namespace));
            }
            Ok(Some(watcher::Event::Delete(namespace))) => {
                sender.send_modify(|current| drop(Arc::make_mut(current).remove(&namespace.name_any())));
            }
        }
    }
}

fn insert(namespaces: &mut Namespaces, namespace: &Namespace) {
    match serde_json::to_value(namespace) {
        Ok(object) => drop(namespaces.insert(namespace.name_any(), Arc::new(object))),
        Err(error) => warn!(name = namespace.name_any(), %error, "a namespace cannot be shown as JSON"),
    }
}
