//! Implements a controller: watches the objects of one kind and everything that affects them, and calls a reconcile function for
//! each object that a change may concern.
//!
//! ```text
//!  watch of the kind ──────► Roots ── changed ──► Queue ── due ──► reconcile ──► settled, or looked at again later
//!  watches of owned kinds ─────────── owners ───────▲                 │
//!  watches of other kinds ── map ── objects ────────┤                 └─ failed: told, and tried again as its remedy says
//!  wake-ups, resync ────────────────────────────────┘
//! ```
//!
//! Guarantees: nothing is reconciled before all objects are known; an object is never reconciled twice at the same
//! time; each change is followed by a reconciliation that began after it; deletions are noticed even if their event
//! was missed; a panic or an error of one object does not affect others; a stop is obeyed at any time, also before
//! the first list.

mod queue;
mod roots;
mod work;

use std::any::TypeId;
use std::fmt::{self, Debug};
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::time::Duration;

use futures::stream::{SelectAll, select_all};
use futures::{Stream, StreamExt};
use kube::core::{ClusterResourceScope, DeserializeGuard};
use kube::runtime::reflector::Store;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;

use self::roots::Roots;
use super::cache::Cache;
use super::key::Key;
use super::retry::Remedy;
use super::watch;

pub use work::Surroundings;

/// A kind that a controller can reconcile.
pub trait Root:
    Resource<DynamicType = (), Scope: 'static> + Clone + DeserializeOwned + Debug + Send + Sync + 'static
{
}

impl<K> Root for K where
    K: Resource<DynamicType = (), Scope: 'static> + Clone + DeserializeOwned + Debug + Send + Sync + 'static
{
}

/// The result of a reconciliation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Next {
    /// There is nothing to do before something changes.
    Settled,
    /// Reconcile again after this time, if nothing changes before.
    After(Duration),
}

/// An error of a reconciliation.
pub trait Failure: std::error::Error + Send + 'static {
    fn remedy(&self) -> Remedy;
}

/// The reconcile function of a controller.
pub trait Reconcile: Send + Sync + 'static {
    type Object: Root;
    type Error: Failure;

    /// Reconciles `object`, as the watch last reported it.
    fn reconcile(&self, object: &Self::Object) -> impl Future<Output = Result<Next, Self::Error>> + Send;

    /// Called when the object is deleted and not being reconciled.
    fn gone(&self, object: &Key) {
        let _ = object;
    }
}

/// Objects reconciled at a time: enough to hide the latency of the API server, too few to be a burden for it.
const CONCURRENCY: NonZeroUsize = match NonZeroUsize::new(16) {
    Some(sixteen) => sixteen,
    None => NonZeroUsize::MIN,
};

type Triggers = SelectAll<Pin<Box<dyn Stream<Item = Key> + Send>>>;

/// A controller's watches and settings.
pub struct Controller<K: Root> {
    name: &'static str,
    events: Pin<Box<dyn Stream<Item = Event<DeserializeGuard<K>>> + Send>>,
    roots: Roots<K>,
    triggers: Triggers,
    concurrency: NonZeroUsize,
    debounce: Duration,
    resync: Option<Duration>,
}

impl<K: Root> Debug for Controller<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controller").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<K: Root> Controller<K> {
    /// Creates a controller for the objects of `api` that match `selected`.
    #[must_use]
    pub fn new(name: &'static str, api: Api<DeserializeGuard<K>>, selected: watcher::Config) -> Self {
        Self {
            name,
            events: watch::events(api, selected).boxed(),
            roots: Roots::new(),
            triggers: select_all([]),
            concurrency: CONCURRENCY,
            debounce: Duration::ZERO,
            resync: None,
        }
    }

    /// The cache of the controller's objects.
    #[must_use]
    pub fn store(&self) -> Store<DeserializeGuard<K>> {
        self.roots.store()
    }

    /// Reconciles an object when an object changes that it owns.
    #[must_use]
    pub fn owns<C>(self, api: Api<C>, selected: watcher::Config) -> Self
    where
        C: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    {
        let namespaced = TypeId::of::<K::Scope>() != TypeId::of::<ClusterResourceScope>();
        self.watches(api, selected, move |owned, _| Key::owners::<K>(owned, namespaced))
    }

    /// Reconciles the objects that `map` returns when an object of another kind changes, exists at the start, or is
    /// deleted. With an `Api<PartialObjectMeta<…>>` only metadata is watched: the contents of Secrets are neither transferred nor
    /// kept in memory.
    #[must_use]
    pub fn watches<C>(
        mut self,
        api: Api<C>,
        selected: watcher::Config,
        map: impl Fn(&C, &Store<DeserializeGuard<K>>) -> Vec<Key> + Send + 'static,
    ) -> Self
    where
        C: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    {
        let store = self.store();
        let touched = watch::events(api, selected).map(move |event| match event {
            Event::Apply(object) | Event::InitApply(object) | Event::Delete(object) => map(&object, &store),
            Event::Init | Event::InitDone => Vec::new(),
        });
        self.triggers.push(touched.flat_map(futures::stream::iter).boxed());
        self
    }

    /// Like [`Self::watches`], and caches in `kept` what `value` extracts of each object, which `map` receives.
    /// Deletions that were missed while the watch was broken are noticed as well.
    #[must_use]
    pub fn keeps<C, V>(
        mut self,
        api: Api<C>,
        selected: watcher::Config,
        (kept, value): (&Cache<V>, impl Fn(C) -> V + Send + 'static),
        map: impl Fn(&V, &Store<DeserializeGuard<K>>) -> Vec<Key> + Send + 'static,
    ) -> Self
    where
        C: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
        V: Clone + Send + 'static,
    {
        let (store, kept) = (self.store(), kept.clone());
        let touched = watch::events(api, selected).map(move |event| {
            let about = kept.hear(event, &value);
            about.iter().flat_map(|value| map(value, &store)).collect::<Vec<_>>()
        });
        self.triggers.push(touched.flat_map(futures::stream::iter).boxed());
        self
    }

    /// Reconciles the objects that `keys` yields, for example because work that was done for them has progressed.
    #[must_use]
    pub fn wakes(mut self, keys: impl Stream<Item = Key> + Send + 'static) -> Self {
        self.triggers.push(keys.boxed());
        self
    }

    /// Reconciles only after changes of the number that `predicate` computes, see [`kube::runtime::predicates`];
    /// without this, after each change of `resourceVersion`. New objects are always reconciled.
    #[must_use]
    pub fn when(mut self, predicate: impl Fn(&K) -> Option<u64> + Send + Sync + 'static) -> Self {
        self.roots.look_at(Box::new(predicate));
        self
    }

    /// Sets how many objects are reconciled at a time.
    #[must_use]
    pub fn concurrency(self, concurrency: NonZeroUsize) -> Self {
        Self { concurrency, ..self }
    }

    /// Sets how long a change waits for others of the same object, so that one reconciliation serves them all.
    #[must_use]
    pub fn debounce(self, debounce: Duration) -> Self {
        Self { debounce, ..self }
    }

    /// Reconciles every object at least this often.
    #[must_use]
    pub fn resync(self, every: Duration) -> Self {
        Self { resync: Some(every), ..self }
    }
}
