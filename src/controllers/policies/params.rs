//! Caches the objects that policies use as params: watched by kind, as long as a policy uses the kind.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use admit_policy::{GroupVersionKind, HostError, Scope};
use futures::future::join_all;
use kube::api::DynamicObject;
use kube::{Api, Client, discovery};
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::collection::Collection;
use super::follow::Followed;
use crate::controllers::kit::tasks::{Closed, Pool};
use crate::telemetry::with_causes;

/// How long a new set of policies waits for its params to be listed. After that they count as unknown, which is an
/// error of the policies that need them.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why the objects of a kind are unknown.
#[derive(Debug, thiserror::Error)]
enum FollowError {
    #[error("the cluster does not tell them in time")]
    TimedOut,
    #[error("{}", with_causes(.0))]
    Discovery(kube::Error),
    #[error(transparent)]
    Closed(#[from] Closed),
}

/// Params by kind.
pub(super) struct Params {
    client: Client,
    pool: Pool,
    followed: RwLock<HashMap<GroupVersionKind, Kind>>,
    /// The last errors of wanted kinds, so that a persisting one is logged once.
    complaints: Mutex<HashMap<GroupVersionKind, String>>,
}

#[derive(Debug)]
struct Kind {
    scope: Scope,
    objects: Arc<Collection>,
    /// Stops the watch when this is dropped.
    stop: CancellationToken,
}

impl Drop for Kind {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Params {
    pub(super) fn new(client: Client, pool: Pool) -> Self {
        Self { client, pool, followed: RwLock::default(), complaints: Mutex::default() }
    }

    pub(super) fn scope(&self, kind: &GroupVersionKind) -> Option<Scope> {
        self.read(|followed| followed.get(kind).map(|kind| kind.scope))
    }

    pub(super) fn of(&self, kind: &GroupVersionKind, namespace: &str) -> Result<Vec<Arc<Value>>, HostError> {
        let objects = self.read(|followed| followed.get(kind).map(|kind| Arc::clone(&kind.objects)));
        let unknown =
            || HostError(format!("params of {}, Kind={} are not known", kind.api_version(), kind.kind));
        objects.ok_or_else(unknown)?.of(namespace)
    }

    pub(super) async fn want(&self, kinds: impl IntoIterator<Item = GroupVersionKind>) {
        let kinds: Vec<GroupVersionKind> = kinds.into_iter().collect();
        self.write(|followed| followed.retain(|kind, _| kinds.contains(kind)));
        self.complaints().retain(|kind, _| kinds.contains(kind));
        let unknown = kinds.iter().filter(|kind| self.scope(kind).is_none());
        join_all(unknown.map(async |kind| {
            let followed = timeout(PATIENCE, self.follow(kind)).await;
            self.tell(kind, followed.unwrap_or(Err(FollowError::TimedOut)));
        }))
        .await;
    }

    /// Logs the result of watching `kind`, unless it is the same as before.
    fn tell(&self, kind: &GroupVersionKind, followed: Result<(), FollowError>) {
        let mut complaints = self.complaints();
        let before = complaints.remove(kind);
        let Err(error) = followed.map_err(|error| error.to_string()) else { return };
        if before.as_ref() != Some(&error) {
            warn!(kind = kind.kind, error, "params are not known yet: their policies fail");
        }
        complaints.insert(kind.clone(), error);
    }

    /// Watches `kind`, and returns when its objects are listed.
    async fn follow(&self, kind: &GroupVersionKind) -> Result<(), FollowError> {
        let named = kube::core::GroupVersionKind::gvk(&kind.group, &kind.version, &kind.kind);
        let found = discovery::pinned_kind(&self.client, &named).await;
        let (resource, capabilities) = found.map_err(FollowError::Discovery)?;
        let scope = match capabilities.scope {
            discovery::Scope::Cluster => Scope::Cluster,
            discovery::Scope::Namespaced => Scope::Namespaced,
        };
        let objects = Arc::new(Collection::new(&resource.plural));
        let (stop, changed) = (CancellationToken::new(), Arc::new(Notify::new()));
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
        let following = Followed { api, resource, into: Arc::clone(&objects), changed: Arc::clone(&changed) };
        self.pool.submit(following.run(stop.clone()))?;
        let entry = Kind { scope, objects: Arc::clone(&objects), stop };
        self.write(|followed| drop(followed.insert(kind.clone(), entry)));
        while objects.trouble().is_some() {
            changed.notified().await;
        }
        Ok(())
    }

    fn complaints(&self) -> MutexGuard<'_, HashMap<GroupVersionKind, String>> {
        self.complaints.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read<T>(&self, look: impl FnOnce(&HashMap<GroupVersionKind, Kind>) -> T) -> T {
        look(&self.followed.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn write(&self, change: impl FnOnce(&mut HashMap<GroupVersionKind, Kind>)) {
        change(&mut self.followed.write().unwrap_or_else(PoisonError::into_inner));
    }
}
