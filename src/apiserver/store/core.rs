//! Holds the multi-version map behind the store: per object its recent states, per resource a ring of recent events.
//!
//! The data of a resource is shared between a store and its forks, until one of them writes to that resource.
//!
//! INVARIANT: the states of an object that lie above the resource's compaction revision are all kept, and below it the
//! newest one; so every revision from the compaction to now can be shown exactly.

mod writes;

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use tokio::sync::watch;

use super::backend::{BackendError, Image};
use super::packed::{Packed, Recent};
use super::{Event, EventKind, Expect, Kept, Key, Page, Range, Revision, StoreError, Stored};

/// Events kept per resource: enough for a client that re-connects, small enough to stay in memory.
const RING_EVENTS: usize = 8192;
/// Most bytes of events per resource. Within these two limits events take no more bytes than the current objects of the
/// resource, so that history is never the larger part of a store's memory.
const RING_MOST: usize = 32 << 20;
/// Bytes of events that are kept in any case.
const RING_LEAST: usize = 8 << 20;

#[derive(Debug)]
pub(super) struct Shared {
    core: RwLock<Core>,
    published: AtomicU64,
    /// Number of objects that lists have examined.
    looked_at: AtomicU64,
    recent: Recent,
}

#[derive(Debug, Default)]
struct Core {
    assigned: Revision,
    /// Why writes are refused at present.
    refusing: Option<BackendError>,
    /// Start of the history of resources without a partition.
    base: Revision,
    /// States of earlier revisions are no longer listed, although watches may still begin there.
    expired: Revision,
    partitions: BTreeMap<Arc<str>, Partition>,
}

#[derive(Debug)]
struct Partition {
    held: Arc<Held>,
    wake: watch::Sender<Revision>,
}

/// A namespace and a name.
type Place = (String, String);

/// The objects of one resource. A clone shares objects and events, and costs a few words for each.
#[derive(Clone, Debug, Default)]
struct Held {
    objects: BTreeMap<Arc<Place>, Vec<Version>>,
    ring: VecDeque<Retained>,
    ring_bytes: usize,
    /// Count of the current objects, and their bytes.
    number: usize,
    bytes: usize,
    compacted: Revision,
}

#[derive(Clone, Debug)]
struct Version {
    revision: Revision,
    /// None: deleted.
    object: Option<Arc<Packed>>,
}

#[derive(Clone, Debug)]
struct Retained {
    event: Arc<Event>,
    place: Arc<Place>,
    bytes: usize,
}

impl Shared {
    pub(super) fn new() -> Self {
        Self::of(Core::default())
    }

    fn of(core: Core) -> Self {
        let published = AtomicU64::new(core.assigned);
        Self { core: RwLock::new(core), published, looked_at: AtomicU64::new(0), recent: Recent::default() }
    }

    pub(super) fn from_image(image: Image) -> Self {
        let mut core = Core { assigned: image.revision, base: image.revision, ..Core::default() };
        for (key, Kept { revision, object }) in image.objects {
            let held = core.held(&key.resource);
            held.count(Some(&object), None);
            let versions = vec![Version { revision, object: Some(object) }];
            held.objects.insert(Arc::new((key.namespace, key.name)), versions);
        }
        Self::of(core)
    }

    /// Returns an independent copy of the state that readers may see.
    pub(super) fn fork(&self) -> Self {
        let core = self.read();
        // Changes that are not published yet are left out.
        let published = self.published();
        let forked = core.partitions.iter();
        let forked = forked.map(|(resource, partition)| (Arc::clone(resource), partition.fork(published)));
        let partitions = forked.collect();
        let Core { base, expired, .. } = *core;
        Self::of(Core { assigned: published, refusing: None, base, expired, partitions })
    }

    pub(super) fn published(&self) -> Revision {
        self.published.load(Ordering::Acquire)
    }

    /// Lets readers see everything up to `revision` and wakes the watchers of `resources`.
    pub(super) fn publish(&self, revision: Revision, resources: &[&Arc<str>]) {
        self.published.fetch_max(revision, Ordering::AcqRel);
        let core = self.read();
        for resource in resources {
            if let Some(partition) = core.partitions.get(*resource) {
                partition.wake.send_modify(|seen| *seen = revision.max(*seen));
            }
        }
    }

    pub(super) fn get(&self, key: &Key, at: Revision) -> Option<Stored> {
        self.kept(key, at)
            .map(|kept| Stored { revision: kept.revision, object: self.recent.values(&kept.object) })
    }

    pub(super) fn kept(&self, key: &Key, at: Revision) -> Option<Kept> {
        let core = self.read();
        shown_at(core.partitions.get(&key.resource)?.held.versions(key)?, at)
    }

    /// Whether `resource` has no object in the newest state.
    pub(super) fn is_empty(&self, resource: &str) -> bool {
        self.read().partitions.get(resource).is_none_or(|partition| partition.held.number == 0)
    }

    pub(super) fn size(&self, resource: &str) -> (usize, usize) {
        let core = self.read();
        let held = core.partitions.get(resource).map(|partition| &partition.held);
        held.map_or((0, 0), |held| (held.number, held.bytes))
    }

    pub(super) fn looked_at(&self) -> u64 {
        self.looked_at.load(Ordering::Relaxed)
    }

    pub(super) fn list(
        &self,
        resource: &str,
        range: Range<'_>,
        limit: usize,
        take: &mut dyn FnMut(&Kept) -> bool,
    ) -> Result<Page, StoreError> {
        let newest = self.published();
        let revision = range.at.unwrap_or(newest);
        if revision > newest {
            return Err(StoreError::Future { wanted: revision, newest });
        }
        let mut page = Page { revision, items: Vec::new(), remaining: 0 };
        let mut found = self.shown(resource, range, revision)?.into_iter();
        for kept in found.by_ref() {
            if take(&kept) {
                page.items.push(kept);
                if limit > 0 && page.items.len() == limit {
                    break;
                }
            }
        }
        page.remaining = found.len();
        Ok(page)
    }

    /// Returns the objects in `range`. The lock is held only while they are collected; the caller examines them later.
    fn shown(&self, resource: &str, range: Range<'_>, revision: Revision) -> Result<Vec<Kept>, StoreError> {
        let core = self.read();
        let Some(partition) = core.partitions.get(resource) else { return Ok(Vec::new()) };
        let held = &partition.held;
        let compacted = held.compacted.max(core.expired);
        if revision < compacted {
            return Err(StoreError::Compacted { compacted });
        }
        let mut found = Vec::new();
        for (at, versions) in held.objects.range::<Place, _>(first_key(range)..) {
            if range.namespace.is_some_and(|namespace| namespace != at.0) {
                break;
            }
            if range.after.is_some_and(|after| after == (at.0.as_str(), at.1.as_str())) {
                continue;
            }
            found.extend(shown_at(versions, revision));
        }
        self.looked_at.fetch_add(u64::try_from(found.len()).unwrap_or(u64::MAX), Ordering::Relaxed);
        Ok(found)
    }

    /// Checks that every change after `revision` is still in the history; else [`StoreError::Compacted`].
    pub(super) fn oldest_ok(&self, resource: &str, revision: Revision) -> Result<(), StoreError> {
        let core = self.read();
        let compacted = core.partitions.get(resource).map_or(core.base, |partition| partition.held.compacted);
        if revision < compacted { Err(StoreError::Compacted { compacted }) } else { Ok(()) }
    }

    /// The first `limit` changes with revisions in (`after`, `upto`].
    pub(super) fn events(
        &self,
        resource: &str,
        (after, upto): (Revision, Revision),
        limit: usize,
    ) -> Result<Vec<Arc<Event>>, StoreError> {
        let core = self.read();
        let Some(partition) = core.partitions.get(resource) else { return Ok(Vec::new()) };
        let held = &partition.held;
        if after < held.compacted {
            return Err(StoreError::Compacted { compacted: held.compacted });
        }
        let start = held.ring.partition_point(|retained| retained.event.revision <= after);
        let known = held.ring.range(start..).take_while(|retained| retained.event.revision <= upto);
        Ok(known.take(limit).map(|retained| Arc::clone(&retained.event)).collect())
    }

    /// Returns a receiver that changes whenever events of `resource` become visible.
    pub(super) fn wake(&self, resource: &str) -> watch::Receiver<Revision> {
        let resource: Arc<str> = resource.into();
        self.write().partition(&resource).wake.subscribe()
    }

    pub(super) fn compact(&self, revision: Revision) {
        let mut core = self.write();
        for partition in core.partitions.values_mut() {
            let held = Arc::make_mut(&mut partition.held);
            while held.ring.front().is_some_and(|oldest| oldest.event.revision <= revision) {
                held.forget_oldest();
            }
            held.compacted = held.compacted.max(revision);
        }
        core.base = core.base.max(revision);
    }

    pub(super) fn expire(&self, revision: Revision) {
        let mut core = self.write();
        core.expired = core.expired.max(revision);
    }

    pub(super) fn takes_writes(&self) -> bool {
        self.read().refusing.is_none()
    }

    /// Refuses writes from now on, for the reason `why`, and rolls back those that are not published. `cancel` is called once no
    /// further write can be submitted.
    pub(super) fn refuse(&self, why: &BackendError, cancel: impl FnOnce()) {
        let mut core = self.write();
        core.refusing = Some(why.clone());
        cancel();
        let published = self.published();
        for partition in core.partitions.values_mut() {
            Arc::make_mut(&mut partition.held).take_back(published);
        }
    }

    /// Accepts writes again.
    pub(super) fn accept(&self) {
        self.write().refusing = None;
    }

    // A panic while the lock is held cannot leave a partial change behind: every change is one insertion.
    fn read(&self) -> RwLockReadGuard<'_, Core> {
        self.core.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Core> {
        self.core.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Core {
    fn next_revision(&mut self) -> Revision {
        self.assigned += 1;
        self.assigned
    }

    fn partition(&mut self, resource: &Arc<str>) -> &mut Partition {
        let compacted = self.base;
        self.partitions.entry(Arc::clone(resource)).or_insert_with(|| Partition {
            held: Arc::new(Held { compacted, ..Held::default() }),
            wake: watch::Sender::new(0),
        })
    }

    /// Returns the data of the resource for writing, unshared from forks.
    fn held(&mut self, resource: &Arc<str>) -> &mut Held {
        Arc::make_mut(&mut self.partition(resource).held)
    }

    fn expected(&self, key: &Key, expect: Expect) -> Result<Option<Kept>, StoreError> {
        let current = self
            .partitions
            .get(&key.resource)
            .and_then(|partition| partition.held.versions(key))
            .and_then(|versions| shown_at(versions, Revision::MAX));
        let as_expected = match (expect, &current) {
            (Expect::Absent, None) => true,
            (Expect::Revision(wanted), Some(stored)) => stored.revision == wanted,
            _ => false,
        };
        match &self.refusing {
            _ if !as_expected => Err(StoreError::Conflict(current.map(|stored| stored.revision))),
            Some(why) => Err(StoreError::Backend(why.clone())),
            None => Ok(current),
        }
    }

    fn record(&mut self, key: &Key, event: Event, published: Revision) {
        let revision = event.revision;
        let held = self.held(&key.resource);
        let now = (event.kind != EventKind::Deleted).then(|| Arc::clone(&event.object));
        held.count(now.as_ref(), event.previous.as_ref());
        event.previous.iter().for_each(|previous| previous.unpin());
        let at = (key.namespace.clone(), key.name.clone());
        let place = held.objects.get_key_value(&at).map(|(known, _)| Arc::clone(known));
        let place = place.unwrap_or_else(|| Arc::new(at));
        // Most objects have one version, so capacity for one is enough.
        let versions = held.objects.entry(Arc::clone(&place)).or_insert_with(|| Vec::with_capacity(1));
        versions.push(Version { revision, object: now });
        let bytes = event.object.held();
        held.ring_bytes += bytes;
        held.ring.push_back(Retained { event: Arc::new(event), place, bytes });
        let most = held.bytes.clamp(RING_LEAST, RING_MOST);
        // Events that readers may not see yet are kept, however large: watchers have not received them.
        while (held.ring.len() > RING_EVENTS || held.ring_bytes > most)
            && held.ring.front().is_some_and(|oldest| oldest.event.revision < published)
        {
            held.forget_oldest();
        }
    }
}

impl Partition {
    /// Returns a copy up to `revision`, without watchers.
    fn fork(&self, revision: Revision) -> Self {
        let mut held = Arc::clone(&self.held);
        if held.ring.back().is_some_and(|newest| newest.event.revision > revision) {
            Arc::make_mut(&mut held).take_back(revision);
        }
        Self { held, wake: watch::Sender::new(revision) }
    }
}

impl Held {
    fn versions(&self, key: &Key) -> Option<&[Version]> {
        self.objects.get(&(key.namespace.clone(), key.name.clone())).map(Vec::as_slice)
    }

    /// Updates count and bytes after `before` was replaced by `now`.
    fn count(&mut self, now: Option<&Arc<Packed>>, before: Option<&Arc<Packed>>) {
        let held = |object: Option<&Arc<Packed>>| object.map_or((0, 0), |object| (1, object.held()));
        let ((more, larger), (fewer, smaller)) = (held(now), held(before));
        self.number = self.number.saturating_add(more).saturating_sub(fewer);
        self.bytes = self.bytes.saturating_add(larger).saturating_sub(smaller);
    }

    /// Removes all changes after `revision`.
    fn take_back(&mut self, revision: Revision) {
        while self.ring.back().is_some_and(|newest| newest.event.revision > revision) {
            let Some(Retained { event, place, bytes }) = self.ring.pop_back() else { return };
            self.ring_bytes = self.ring_bytes.saturating_sub(bytes);
            let undone = (event.kind != EventKind::Deleted).then_some(&event.object);
            self.count(event.previous.as_ref(), undone);
            let Some(versions) = self.objects.get_mut(&place) else { continue };
            versions.retain(|version| version.revision <= revision);
            if versions.is_empty() {
                self.objects.remove(&place);
            }
        }
    }

    fn forget_oldest(&mut self) {
        let Some(Retained { event, place, bytes }) = self.ring.pop_front() else { return };
        self.ring_bytes = self.ring_bytes.saturating_sub(bytes);
        self.compacted = event.revision;
        let Some(versions) = self.objects.get_mut(&place) else { return };
        let newest = versions.iter().rposition(|version| version.revision <= event.revision);
        versions.drain(..newest.unwrap_or(0));
        versions.shrink_to_fit();
        if let [Version { object: None, .. }] = versions.as_slice() {
            self.objects.remove(&place);
        }
    }
}

fn shown_at(versions: &[Version], at: Revision) -> Option<Kept> {
    let version = versions.iter().rev().find(|version| version.revision <= at)?;
    let object = version.object.as_ref()?;
    Some(Kept { revision: version.revision, object: Arc::clone(object) })
}

fn first_key(range: Range<'_>) -> (String, String) {
    let (namespace, name) = range.after.unwrap_or((range.namespace.unwrap_or_default(), ""));
    (namespace.to_owned(), name.to_owned())
}
