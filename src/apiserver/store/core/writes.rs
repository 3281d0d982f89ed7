//! Applies writes: each is one revision, and one event for watchers.

use std::sync::Arc;

use serde_json::Value;

use super::Shared;
use crate::store::packed::{Draft, Packed};
use crate::store::{Event, EventKind, Expect, Key, Revision, StoreError, Stored};

impl Shared {
    /// Calls `submit` with the write before any later write is assigned its revision.
    pub(in crate::store) fn put(
        &self,
        key: &Key,
        expect: Expect,
        mut object: Value,
        submit: impl FnOnce(Revision, &Arc<Packed>),
    ) -> Result<(Arc<Packed>, Stored), StoreError> {
        let draft = Draft::of(&mut object);
        let mut core = self.write();
        let previous = core.expected(key, expect)?;
        let revision = core.next_revision();
        let (packed, object) = draft.at(revision, object);
        let event = Event {
            revision,
            kind: if previous.is_some() { EventKind::Modified } else { EventKind::Added },
            namespace: key.namespace.clone(),
            object: Arc::clone(&packed),
            previous: previous.map(|kept| kept.object),
        };
        core.record(key, event, self.published());
        submit(revision, &packed);
        Ok((packed, Stored { revision, object }))
    }

    /// Caches the parsed form of an object that was just written.
    pub(in crate::store) fn remember(&self, packed: &Arc<Packed>, object: &Arc<Value>) {
        self.recent.keep(packed, object);
    }

    pub(in crate::store) fn delete(
        &self,
        key: &Key,
        expected: Revision,
        mut last: Value,
        submit: impl FnOnce(Revision),
    ) -> Result<Stored, StoreError> {
        let draft = Draft::of(&mut last);
        let (revision, object) =
            self.removed(key, expected, submit, |revision, _| draft.at(revision, last))?;
        Ok(Stored { revision, object })
    }

    /// Like [`Self::delete`]; watchers get the object as it is stored, which is not parsed.
    pub(in crate::store) fn delete_unchanged(
        &self,
        key: &Key,
        expected: Revision,
        submit: impl FnOnce(Revision),
    ) -> Result<Revision, StoreError> {
        let (revision, ()) =
            self.removed(key, expected, submit, |revision, stored| (stored.at(revision), ()))?;
        Ok(revision)
    }

    /// Only watchers read a removed object, and they use its JSON: it must not displace others from the cache.
    fn removed<T>(
        &self,
        key: &Key,
        expected: Revision,
        submit: impl FnOnce(Revision),
        last: impl FnOnce(Revision, &Packed) -> (Arc<Packed>, T),
    ) -> Result<(Revision, T), StoreError> {
        let mut core = self.write();
        let previous =
            core.expected(key, Expect::Revision(expected))?.ok_or(StoreError::Conflict(None))?.object;
        let revision = core.next_revision();
        let (object, told) = last(revision, &previous);
        let namespace = key.namespace.clone();
        let event = Event { revision, kind: EventKind::Deleted, namespace, object, previous: Some(previous) };
        core.record(key, event, self.published());
        submit(revision);
        Ok((revision, told))
    }
}
