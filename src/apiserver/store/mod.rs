//! Implements the versioned store: every object with its recent history, and one revision counter for all of them.
//!
//! Reads are consistent at one revision, also across the pages of a list; writers state which revision they replace.
//! History is bounded: requests for states older than a resource's retained events get [`StoreError::Compacted`].
//! A [`Backend`] makes writes durable; without one the store lives in memory only. A write becomes visible to readers
//! and watchers only once the backend holds it.

mod backend;
mod committer;
mod core;
mod packed;
mod redb;
mod watch;

use std::sync::Arc;

use serde_json::Value;
use tokio::sync::oneshot;

pub use self::backend::{Backend, BackendError, Image, Record};
use self::committer::Committer;
use self::core::Shared;
pub use self::packed::Packed;
pub(crate) use self::packed::estimate;
pub use self::redb::{Medium, Opened, RedbBackend, StateFile, Unsynced, UnsyncedFile};
pub use self::watch::Subscription;

use crate::interrupt;

/// The value of the one counter that all writes raise: what clients see as `resourceVersion`.
pub type Revision = u64;

/// The key of an object: its resource's storage key, its namespace (empty for cluster scope) and its name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    pub resource: Arc<str>,
    pub namespace: String,
    pub name: String,
}

/// A stored object; `metadata.resourceVersion` holds `revision`.
#[derive(Clone, Debug)]
pub struct Stored {
    pub revision: Revision,
    pub object: Arc<Value>,
}

/// A stored object that need not have been parsed yet.
///
/// [`Store`] has an example.
#[derive(Clone, Debug)]
pub struct Kept {
    pub revision: Revision,
    pub object: Arc<Packed>,
}

impl Kept {
    #[must_use]
    pub fn stored(&self) -> Stored {
        Stored { revision: self.revision, object: self.object.values() }
    }

    /// Wraps an object that is in no store.
    pub(crate) fn alone(mut object: Value) -> Self {
        let (object, _) = packed::Draft::of(&mut object).at(0, object);
        Self { revision: 0, object }
    }
}

/// The precondition of a write: what the writer expects of the object that it replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    Absent,
    Revision(Revision),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    Added,
    Modified,
    Deleted,
}

/// One change of an object, as watchers see it.
#[derive(Debug)]
pub struct Event {
    pub revision: Revision,
    pub kind: EventKind,
    pub namespace: String,
    /// The object after the change; of a deletion the last state, with the deletion's resourceVersion.
    pub object: Arc<Packed>,
    /// The object before the change.
    pub previous: Option<Arc<Packed>>,
}

/// One page of a list.
#[derive(Debug)]
pub struct Page {
    pub revision: Revision,
    pub items: Vec<Kept>,
    /// Objects after this page, before any selector.
    pub remaining: usize,
}

/// Which part of a resource to list.
#[derive(Clone, Copy, Debug, Default)]
pub struct Range<'a> {
    pub namespace: Option<&'a str>,
    /// Start after this namespace and name.
    pub after: Option<(&'a str, &'a str)>,
    /// The state at this revision; the newest when absent.
    pub at: Option<Revision>,
}

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The object is not what the writer expected; it is now at this revision, or absent.
    #[error("the object is at revision {0:?}")]
    Conflict(Option<Revision>),
    #[error("history before revision {compacted} is gone")]
    Compacted { compacted: Revision },
    #[error("revision {wanted} is above the newest one, {newest}")]
    Future { wanted: Revision, newest: Revision },
    #[error("the store cannot write: {0}")]
    Backend(BackendError),
}

/// ```
/// use admit_apiserver::store::{EventKind, Expect, Key, Range, Store};
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = Store::in_memory();
/// assert_eq!((store.is_empty("cats"), store.takes_writes()), (true, None));
/// let mut watch = store.watch("cats", store.revision())?;
///
/// let key = Key { resource: "cats".into(), namespace: "shop".to_owned(), name: "tom".to_owned() };
/// let cat = json!({"kind": "Cat", "metadata": {"name": "tom", "namespace": "shop"}});
/// let made = store.put(&key, Expect::Absent, cat.clone()).await?;
/// assert!(store.put(&key, Expect::Absent, cat.clone()).await.is_err(), "there is one");
/// assert_eq!(store.get(&key).map(|found| found.revision), Some(made.revision));
/// assert_eq!(store.latest(&key).map(|found| found.revision), Some(made.revision));
/// let kept = store.kept(&key).unwrap();
/// assert_eq!(kept.stored().object, kept.object.values());
/// assert!(kept.object.text().starts_with(b"{"));
/// let page = store.list("cats", Range::default(), 10, &mut |_| true)?;
/// assert_eq!((page.items.len(), store.looked_at()), (1, 1));
///
/// let fork = store.fork();
/// store.delete(&key, made.revision, cat).await?;
/// assert!(store.get(&key).is_none() && fork.get(&key).is_some());
/// watch.changed().await;
/// assert_eq!(watch.page(Range::default(), 10)?.items.len(), 0);
/// assert_eq!(watch.drain_some(1)?[0].kind, EventKind::Added);
/// assert_eq!(watch.drain()?[0].kind, EventKind::Deleted);
/// assert_eq!(watch.seen(), store.revision());
///
/// store.compact(store.revision());
/// assert!(store.watch("cats", 1).is_err(), "what came after that is forgotten");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Store {
    shared: Arc<Shared>,
    committer: Option<Committer>,
}

impl Store {
    /// A store that forgets everything when it is dropped.
    #[must_use]
    pub fn in_memory() -> Self {
        Self { shared: Arc::new(Shared::new()), committer: None }
    }

    /// Opens a durable store: loads what `backend` holds; every write goes to the backend before it is acknowledged.
    /// [`RedbBackend`] and [`Backend`] have examples.
    ///
    /// # Errors
    /// When the backend's content cannot be read, or its thread cannot be started.
    pub fn open(backend: Box<dyn Backend>) -> Result<Self, BackendError> {
        let image = backend.load()?;
        let shared = Arc::new(Shared::from_image(image));
        let committer = Committer::start(backend, Arc::clone(&shared))?;
        Ok(Self { shared, committer: Some(committer) })
    }

    /// Returns an independent store in memory that begins with all that readers of this one may see, including history. The two
    /// share the data of each resource until one of them changes it.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self { shared: Arc::new(self.shared.fork()), committer: None }
    }

    /// Whether writes are accepted now: not after one could not be made durable, until the backend recovers. None for a store
    /// without a backend.
    #[must_use]
    pub fn takes_writes(&self) -> Option<bool> {
        self.committer.is_some().then(|| self.shared.takes_writes())
    }

    /// The newest revision that readers may see.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.shared.published()
    }

    #[must_use]
    pub fn get(&self, key: &Key) -> Option<Stored> {
        self.shared.get(key, self.revision())
    }

    /// Like [`Self::get`], without parsing the object.
    #[must_use]
    pub fn kept(&self, key: &Key) -> Option<Kept> {
        self.shared.kept(key, self.revision())
    }

    /// Whether `resource` has no object in the newest state.
    #[must_use]
    pub fn is_empty(&self, resource: &str) -> bool {
        self.shared.is_empty(resource)
    }

    /// The number of the objects of `resource` in the newest state, and the bytes that they take.
    #[must_use]
    pub(crate) fn size(&self, resource: &str) -> (usize, usize) {
        self.shared.size(resource)
    }

    /// The number of objects that lists have examined so far.
    #[must_use]
    pub fn looked_at(&self) -> u64 {
        self.shared.looked_at()
    }

    /// Returns the newest state, even if not durable yet: writers must build on it.
    #[must_use]
    pub fn latest(&self, key: &Key) -> Option<Stored> {
        self.shared.get(key, Revision::MAX)
    }

    /// Like [`Self::latest`], for writers after whom nobody reads the object: its parsed form is not cached.
    #[must_use]
    pub(crate) fn latest_once(&self, key: &Key) -> Option<Stored> {
        self.shared.kept(key, Revision::MAX).map(|kept| kept.stored())
    }

    /// Lists objects in order of namespace and name. `take` decides for each whether it belongs to the page, and the page
    /// ends when `limit` objects were taken (0: no limit).
    ///
    /// # Errors
    /// [`StoreError::Compacted`] or [`StoreError::Future`] when `range.at` cannot be shown.
    pub fn list(
        &self,
        resource: &str,
        range: Range<'_>,
        limit: usize,
        take: &mut dyn FnMut(&Kept) -> bool,
    ) -> Result<Page, StoreError> {
        self.shared.list(resource, range, limit, take)
    }

    /// Returns all objects of a namespace, or of all, in their newest state. They are not parsed: callers that walk many of them
    /// parse one at a time.
    ///
    /// # Errors
    /// As [`Self::list`].
    pub(crate) fn all(&self, resource: &str, namespace: Option<&str>) -> Result<Vec<Kept>, StoreError> {
        self.list(resource, Range { namespace, ..Range::default() }, 0, &mut |_| true).map(|page| page.items)
    }

    /// Subscribes to all changes after `revision`, in order.
    ///
    /// # Errors
    /// [`StoreError::Compacted`] when some of them are no longer in the history.
    pub fn watch(&self, resource: &str, revision: Revision) -> Result<Subscription, StoreError> {
        self.shared.oldest_ok(resource, revision)?;
        Ok(Subscription::new(Arc::clone(&self.shared), resource, revision))
    }

    /// Stores `object` under `key` and sets its resourceVersion. Returns the stored object.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when the object is not as expected; [`StoreError::Backend`] when it cannot be stored.
    pub async fn put(&self, key: &Key, expect: Expect, object: Value) -> Result<Stored, StoreError> {
        let (packed, stored, durable) = self.write(key, expect, object)?;
        self.shared.remember(&packed, &stored.object);
        self.settle(key, stored.revision, durable).await?;
        Ok(stored)
    }

    /// Like [`Self::put`], for writers after whom nobody reads the object: its parsed form is not cached.
    ///
    /// # Errors
    /// As [`Self::put`].
    pub(crate) async fn put_once(
        &self,
        key: &Key,
        expect: Expect,
        object: Value,
    ) -> Result<Stored, StoreError> {
        let (_, stored, durable) = self.write(key, expect, object)?;
        self.settle(key, stored.revision, durable).await?;
        Ok(stored)
    }

    fn write(&self, key: &Key, expect: Expect, object: Value) -> Result<Written, StoreError> {
        let mut durable = None;
        let (packed, stored) = stored_whole(|| {
            self.shared.put(key, expect, object, |revision, object| {
                durable = self.submit(key, revision, Some(Arc::clone(object)));
            })
        })?;
        Ok((packed, stored, durable))
    }

    /// Removes the object at `expected`. `last` is the final state for watchers; it is returned with the revision of the removal.
    ///
    /// # Errors
    /// As [`Self::put`].
    pub async fn delete(&self, key: &Key, expected: Revision, last: Value) -> Result<Stored, StoreError> {
        let mut durable = None;
        let removed = stored_whole(|| {
            self.shared.delete(key, expected, last, |revision| {
                durable = self.submit(key, revision, None);
            })
        })?;
        self.settle(key, removed.revision, durable).await?;
        Ok(removed)
    }

    /// Like [`Self::delete`], with the object as it is stored as its final state. Returns the revision of the removal.
    ///
    /// # Errors
    /// As [`Self::put`].
    pub(crate) async fn delete_unchanged(
        &self,
        key: &Key,
        expected: Revision,
    ) -> Result<Revision, StoreError> {
        let mut durable = None;
        let revision = stored_whole(|| {
            self.shared.delete_unchanged(key, expected, |revision| {
                durable = self.submit(key, revision, None);
            })
        })?;
        self.settle(key, revision, durable).await?;
        Ok(revision)
    }

    /// Forgets history up to `revision`, as etcd's compaction does.
    pub fn compact(&self, revision: Revision) {
        self.shared.compact(revision.min(self.revision()));
    }

    /// Lists no state before `revision` any longer; watches may still begin there.
    pub(crate) fn expire(&self, revision: Revision) {
        self.shared.expire(revision.min(self.revision()));
    }

    fn submit(&self, key: &Key, revision: Revision, object: Option<Arc<Packed>>) -> Option<Durable> {
        let committer = self.committer.as_ref()?;
        let (done, durable) = oneshot::channel();
        committer.submit(Record { key: key.clone(), revision, object }, done);
        Some(durable)
    }

    async fn settle(
        &self,
        key: &Key,
        revision: Revision,
        durable: Option<Durable>,
    ) -> Result<(), StoreError> {
        let Some(durable) = durable else {
            self.shared.publish(revision, &[&key.resource]);
            return Ok(());
        };
        told(durable).await
    }
}

async fn told(durable: Durable) -> Result<(), StoreError> {
    match durable.await {
        Ok(outcome) => outcome.map_err(StoreError::Backend),
        Err(_) => Err(StoreError::Backend(BackendError("the writer thread ended".to_owned()))),
    }
}

/// Runs `write` without interruption; the request stays uninterruptible afterwards, unless nothing was stored.
fn stored_whole<T>(write: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
    let begins = interrupt::commit();
    let written = write();
    if begins && written.is_err() {
        interrupt::withdraw();
    }
    written
}

/// A write that readers do not see yet.
type Written = (Arc<Packed>, Stored, Option<Durable>);

type Durable = oneshot::Receiver<Result<(), BackendError>>;
