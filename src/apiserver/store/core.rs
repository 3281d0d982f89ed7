//! The multi-version map behind the store: per object its recent states, per resource a ring of recent events.
//!
//! INVARIANT: the states of an object that lie above the resource's compaction revision are all kept, and below it the
//! newest one; so every revision from the compaction to now can be shown exactly.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use serde_json::Value;
use tokio::sync::watch;

use super::backend::Image;
use super::{Event, EventKind, Expect, Key, Page, Range, Revision, StoreError, Stored};

/// Events kept per resource: enough for a client that re-connects, small enough to stay in memory.
const RING_EVENTS: usize = 8192;
/// A resource of large objects keeps fewer: 32 MiB of event objects by estimate.
const RING_BYTES: usize = 32 << 20;

#[derive(Debug)]
pub(super) struct Shared {
    core: RwLock<Core>,
    published: AtomicU64,
}

#[derive(Debug, Default)]
struct Core {
    assigned: Revision,
    /// Why no write is taken at present.
    refusing: Option<String>,
    /// Of resources without a partition, history begins here.
    base: Revision,
    partitions: BTreeMap<Arc<str>, Partition>,
}

#[derive(Debug)]
struct Partition {
    objects: BTreeMap<(String, String), Vec<Version>>,
    ring: VecDeque<Retained>,
    ring_bytes: usize,
    compacted: Revision,
    wake: watch::Sender<Revision>,
}

#[derive(Debug)]
struct Version {
    revision: Revision,
    /// None: deleted.
    object: Option<Arc<Value>>,
}

#[derive(Debug)]
struct Retained {
    event: Arc<Event>,
    name: String,
    bytes: usize,
}

impl Shared {
    pub(super) fn new() -> Self {
        Self { core: RwLock::default(), published: AtomicU64::new(0) }
    }

    pub(super) fn from_image(image: Image) -> Self {
        let mut core = Core { assigned: image.revision, base: image.revision, ..Core::default() };
        for (key, stored) in image.objects {
            let partition = core.partition(&key.resource);
            let versions = vec![Version { revision: stored.revision, object: Some(stored.object) }];
            partition.objects.insert((key.namespace, key.name), versions);
        }
        Self { published: AtomicU64::new(image.revision), core: RwLock::new(core) }
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
        let core = self.read();
        let versions =
            core.partitions.get(&key.resource)?.objects.get(&(key.namespace.clone(), key.name.clone()))?;
        shown_at(versions, at)
    }

    pub(super) fn list(
        &self,
        resource: &str,
        range: Range<'_>,
        limit: usize,
        take: &mut dyn FnMut(&Stored) -> bool,
    ) -> Result<Page, StoreError> {
        let newest = self.published();
        let revision = range.at.unwrap_or(newest);
        if revision > newest {
            return Err(StoreError::Future { wanted: revision, newest });
        }
        let core = self.read();
        let mut page = Page { revision, items: Vec::new(), remaining: 0 };
        let Some(partition) = core.partitions.get(resource) else { return Ok(page) };
        if revision < partition.compacted {
            return Err(StoreError::Compacted { compacted: partition.compacted });
        }
        let mut full = false;
        for (at, versions) in partition.objects.range(first_key(range)..) {
            if range.namespace.is_some_and(|namespace| namespace != at.0) {
                break;
            }
            if range.after.is_some_and(|after| after == (at.0.as_str(), at.1.as_str())) {
                continue;
            }
            let Some(stored) = shown_at(versions, revision) else { continue };
            if full {
                page.remaining += 1;
            } else if take(&stored) {
                page.items.push(stored);
                full = limit > 0 && page.items.len() == limit;
            }
        }
        Ok(page)
    }

    /// Whether every change after `revision` is still known.
    pub(super) fn oldest_ok(&self, resource: &str, revision: Revision) -> Result<(), StoreError> {
        let core = self.read();
        let compacted = core.partitions.get(resource).map_or(core.base, |partition| partition.compacted);
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
        if after < partition.compacted {
            return Err(StoreError::Compacted { compacted: partition.compacted });
        }
        let start = partition.ring.partition_point(|retained| retained.event.revision <= after);
        let known = partition.ring.range(start..).take_while(|retained| retained.event.revision <= upto);
        Ok(known.take(limit).map(|retained| Arc::clone(&retained.event)).collect())
    }

    /// A receiver that changes whenever events of `resource` become visible.
    pub(super) fn wake(&self, resource: &str) -> watch::Receiver<Revision> {
        let resource: Arc<str> = resource.into();
        self.write().partition(&resource).wake.subscribe()
    }

    /// `submit` hears of the write before any later one is assigned its revision.
    pub(super) fn put(
        &self,
        key: &Key,
        expect: Expect,
        mut object: Value,
        submit: impl FnOnce(Revision, &Arc<Value>),
    ) -> Result<Stored, StoreError> {
        let mut core = self.write();
        let previous = core.expected(key, expect)?;
        let revision = core.next_revision();
        set_resource_version(&mut object, revision);
        let object = Arc::new(object);
        let kind = if previous.is_some() { EventKind::Modified } else { EventKind::Added };
        let event = Event {
            revision,
            kind,
            namespace: key.namespace.clone(),
            object: Arc::clone(&object),
            previous: previous.map(|stored| stored.object),
        };
        core.record(key, event, Some(Arc::clone(&object)), self.published());
        submit(revision, &object);
        Ok(Stored { revision, object })
    }

    pub(super) fn delete(
        &self,
        key: &Key,
        expected: Revision,
        mut last: Value,
        submit: impl FnOnce(Revision),
    ) -> Result<Revision, StoreError> {
        let mut core = self.write();
        let previous = core.expected(key, Expect::Revision(expected))?;
        let revision = core.next_revision();
        set_resource_version(&mut last, revision);
        let event = Event {
            revision,
            kind: EventKind::Deleted,
            namespace: key.namespace.clone(),
            object: Arc::new(last),
            previous: previous.map(|stored| stored.object),
        };
        core.record(key, event, None, self.published());
        submit(revision);
        Ok(revision)
    }

    pub(super) fn compact(&self, revision: Revision) {
        let mut core = self.write();
        for partition in core.partitions.values_mut() {
            while partition.ring.front().is_some_and(|oldest| oldest.event.revision <= revision) {
                partition.forget_oldest();
            }
            partition.compacted = partition.compacted.max(revision);
        }
        core.base = core.base.max(revision);
    }

    pub(super) fn takes_writes(&self) -> bool {
        self.read().refusing.is_none()
    }

    /// Takes no more writes, for the reason `why`, and takes back those that are not published. `cancel` is called when no
    /// further one can be submitted.
    pub(super) fn refuse(&self, why: &str, cancel: impl FnOnce()) {
        let mut core = self.write();
        core.refusing = Some(why.to_owned());
        cancel();
        let published = self.published();
        for partition in core.partitions.values_mut() {
            partition.take_back(published);
        }
    }

    /// Takes writes again.
    pub(super) fn accept(&self) {
        self.write().refusing = None;
    }

    // A panic while the lock is held cannot leave half a change behind: every change is one insertion.
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
            objects: BTreeMap::new(),
            ring: VecDeque::new(),
            ring_bytes: 0,
            compacted,
            wake: watch::channel(0).0,
        })
    }

    fn expected(&self, key: &Key, expect: Expect) -> Result<Option<Stored>, StoreError> {
        let current = self
            .partitions
            .get(&key.resource)
            .and_then(|partition| partition.objects.get(&(key.namespace.clone(), key.name.clone())))
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

    fn record(&mut self, key: &Key, event: Event, object: Option<Arc<Value>>, published: Revision) {
        let revision = event.revision;
        let partition = self.partition(&key.resource);
        let versions = partition.objects.entry((key.namespace.clone(), key.name.clone())).or_default();
        versions.push(Version { revision, object });
        let bytes = estimate(&event.object);
        partition.ring_bytes += bytes;
        partition.ring.push_back(Retained { event: Arc::new(event), name: key.name.clone(), bytes });
        // What readers may not see yet must stay, however large: watchers have not had it.
        while (partition.ring.len() > RING_EVENTS || partition.ring_bytes > RING_BYTES)
            && partition.ring.front().is_some_and(|oldest| oldest.event.revision < published)
        {
            partition.forget_oldest();
        }
    }
}

impl Partition {
    /// Forgets what happened after `revision`.
    fn take_back(&mut self, revision: Revision) {
        while self.ring.back().is_some_and(|newest| newest.event.revision > revision) {
            let Some(Retained { event, name, bytes }) = self.ring.pop_back() else { return };
            self.ring_bytes = self.ring_bytes.saturating_sub(bytes);
            let at = (event.namespace.clone(), name);
            let Some(versions) = self.objects.get_mut(&at) else { continue };
            versions.retain(|version| version.revision <= revision);
            if versions.is_empty() {
                self.objects.remove(&at);
            }
        }
    }

    fn forget_oldest(&mut self) {
        let Some(Retained { event, name, bytes }) = self.ring.pop_front() else { return };
        self.ring_bytes = self.ring_bytes.saturating_sub(bytes);
        self.compacted = event.revision;
        let at = (event.namespace.clone(), name);
        let Some(versions) = self.objects.get_mut(&at) else { return };
        let newest = versions.iter().rposition(|version| version.revision <= event.revision);
        versions.drain(..newest.unwrap_or(0));
        if let [Version { object: None, .. }] = versions.as_slice() {
            self.objects.remove(&at);
        }
    }
}

fn shown_at(versions: &[Version], at: Revision) -> Option<Stored> {
    let version = versions.iter().rev().find(|version| version.revision <= at)?;
    let object = version.object.as_ref()?;
    Some(Stored { revision: version.revision, object: Arc::clone(object) })
}

fn first_key(range: Range<'_>) -> (String, String) {
    let (namespace, name) = range.after.unwrap_or((range.namespace.unwrap_or_default(), ""));
    (namespace.to_owned(), name.to_owned())
}

fn set_resource_version(object: &mut Value, revision: Revision) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("resourceVersion".to_owned(), revision.to_string().into());
    }
}

/// Roughly the bytes that an object holds in memory.
pub(crate) fn estimate(value: &Value) -> usize {
    const NODE: usize = 32;
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => NODE,
        Value::String(text) => NODE + text.len(),
        Value::Array(items) => NODE + items.iter().map(estimate).sum::<usize>(),
        Value::Object(members) => {
            NODE + members.iter().map(|(key, value)| NODE + key.len() + estimate(value)).sum::<usize>()
        }
    }
}
