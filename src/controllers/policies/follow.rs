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

/// How soon a cluster is asked again whether it serves a kind that it did not serve.
const NOT_SERVED: Duration = Duration::from_secs(30);

/// How soon after a definition has changed: its kind is served a moment after that is told.
const SOON: Duration = Duration::from_secs(1);

/// A kind to follow.
#[derive(Clone, Debug)]
pub(super) struct Followed {
    pub(super) api: Api<DynamicObject>,
    pub(super) resource: ApiResource,
    pub(super) into: Arc<Collection>,
    /// Told after every change.
    pub(super) changed: Arc<Notify>,
}

impl Followed {
    /// Follows until `shutdown`. Trouble is told, waited out and never the end.
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

    /// Follows, until `shutdown`, the first of `versions` of a kind that the cluster serves. Where it serves none, there are no
    /// objects, and it is asked again now and then, as another release of it may, and when one is `defined`.
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

    /// Returns when the cluster knows no such resource, at once or any more.
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
                // The stream has no end; if it had, it would be trouble.
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

    /// The object as JSON, its kind filled in: items of lists come without.
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

/// Whether a list was answered by 404.
fn is_not_served(error: &watcher::Error) -> bool {
    matches!(error, watcher::Error::InitialListFailed(kube::Error::Api(status)) if status.code == 404)
}

fn key(object: &DynamicObject) -> ObjectKey {
    (object.namespace().unwrap_or_default(), object.name_any())
}
