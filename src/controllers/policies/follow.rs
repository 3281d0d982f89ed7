//! Lists and watches one kind of the cluster into a collection, and lists again after every failure.
//!
//! A watch that broke is not resumed: only a complete list proves that nothing was missed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::TryStreamExt as _;
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::watcher;
use kube::{Api, ResourceExt as _};
use serde_json::Value;
use tokio::sync::{Notify, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::collection::{Collection, ObjectKey};
use crate::controllers::kit::watch::Patience;

/// How soon to check again whether the cluster serves a kind.
const NOT_SERVED: Duration = Duration::from_secs(30);

/// The delay after a CRD has changed: its kind is served a moment after the event.
const SOON: Duration = Duration::from_secs(1);

/// A kind to watch.
#[derive(Clone, Debug)]
pub(super) struct Followed {
    pub(super) api: Api<DynamicObject>,
    pub(super) resource: ApiResource,
    pub(super) into: Arc<Collection>,
    /// Notified after every change.
    pub(super) changed: Arc<Notify>,
}

impl Followed {
    /// Watches until `shutdown`. Errors are logged, and retried after a wait.
    pub(super) async fn run(self, shutdown: CancellationToken) {
        let mut patience = Patience::new(self.resource.kind.clone());
        let following = async {
            loop {
                let error = self.until_trouble(&mut patience).await;
                self.into.broke(Instant::now());
                patience.trouble(&error).await;
            }
        };
        shutdown.run_until_cancelled(following).await;
    }

    /// Watches the first of `versions` of a kind that the cluster serves, until `shutdown`. If it serves none, there are no
    /// objects, and that is checked again periodically, since another release may serve one, and when `defined` reports changed CRDs.
    pub(super) async fn run_if_served(
        versions: Vec<Self>,
        mut defined: watch::Receiver<()>,
        shutdown: CancellationToken,
    ) {
        let following = async {
            let mut wait = NOT_SERVED;
            loop {
                for version in &versions {
                    version.while_served().await;
                }
                if let Some(Self { into, changed, .. }) = versions.first() {
                    into.replace(BTreeMap::new());
                    changed.notify_one();
                }
                let told = timeout(wait, defined.changed()).await;
                wait = if told.is_ok() { SOON } else { NOT_SERVED };
            }
        };
        shutdown.run_until_cancelled(following).await;
    }

    /// Watches, and returns when the cluster does not serve the resource, or not any more.
    async fn while_served(&self) {
        let mut patience = Patience::new(self.resource.kind.clone());
        loop {
            let error = self.until_trouble(&mut patience).await;
            if is_not_served(&error) {
                return;
            }
            self.into.broke(Instant::now());
            patience.trouble(&error).await;
        }
    }

    async fn until_trouble(&self, patience: &mut Patience) -> watcher::Error {
        let mut events = std::pin::pin!(watcher(self.api.clone(), watcher::Config::default()));
        let mut listing = BTreeMap::new();
        loop {
            let event = events.try_next().await;
            if let Ok(Some(event)) = &event {
                patience.heard(event);
            }
            match event {
                Err(error) => return error,
                // The stream never ends; if it did, that would be an error.
                Ok(None) => return watcher::Error::NoResourceVersion,
                Ok(Some(watcher::Event::Init)) => listing.clear(),
                Ok(Some(watcher::Event::InitApply(object))) => listing.extend(self.read(object)),
                Ok(Some(watcher::Event::InitDone)) => self.into.replace(std::mem::take(&mut listing)),
                Ok(Some(watcher::Event::Apply(object))) => {
                    if let Some((key, object)) = self.read(object) {
                        self.into.apply(key, object);
                    }
                }
                Ok(Some(watcher::Event::Delete(object))) => self.into.remove(&key(&object)),
            }
            self.changed.notify_one();
        }
    }

    /// Returns the object as JSON with its kind, which items of lists do not have.
    fn read(&self, mut object: DynamicObject) -> Option<(ObjectKey, Arc<Value>)> {
        let types = kube::api::TypeMeta {
            api_version: self.resource.api_version.clone(),
            kind: self.resource.kind.clone(),
        };
        object.types.get_or_insert(types);
        let key = key(&object);
        match serde_json::to_value(object) {
            Ok(object) => Some((key, Arc::new(object))),
            Err(error) => {
                warn!(kind = self.resource.kind, name = key.1, %error, "an object cannot be shown as JSON");
                None
            }
        }
    }
}

/// Whether a list failed with 404.
fn is_not_served(error: &watcher::Error) -> bool {
    matches!(error, watcher::Error::InitialListFailed(kube::Error::Api(status)) if status.code == 404)
}

fn key(object: &DynamicObject) -> ObjectKey {
    (object.namespace().unwrap_or_default(), object.name_any())
}
