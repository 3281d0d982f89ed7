//! Tracks the position of one watcher in the history of a resource.

use std::sync::Arc;

use tokio::sync::watch;

use super::core::Shared;
use super::{Event, Page, Range, Revision, StoreError};

/// A subscription to the changes of one resource. [`Store`](super::Store) has an example.
#[derive(Debug)]
pub struct Subscription {
    shared: Arc<Shared>,
    resource: String,
    seen: Revision,
    wake: watch::Receiver<Revision>,
}

impl Subscription {
    pub(super) fn new(shared: Arc<Shared>, resource: &str, seen: Revision) -> Self {
        let wake = shared.wake(resource);
        Self { shared, resource: resource.to_owned(), seen, wake }
    }

    /// Returns the revision up to which changes were read.
    #[must_use]
    pub fn seen(&self) -> Revision {
        self.seen
    }

    /// Returns the changes since the last call, without waiting. Afterwards all changes up to [`Self::seen`] have been
    /// returned.
    ///
    /// # Errors
    /// [`StoreError::Compacted`] when this watcher was too slow.
    pub fn drain(&mut self) -> Result<Vec<Arc<Event>>, StoreError> {
        self.drain_some(usize::MAX)
    }

    /// Like [`Self::drain`], at most `limit` changes; the next call returns the rest.
    ///
    /// # Errors
    /// As [`Self::drain`].
    pub fn drain_some(&mut self, limit: usize) -> Result<Vec<Arc<Event>>, StoreError> {
        self.wake.mark_unchanged();
        let upto = self.shared.published();
        if upto <= self.seen {
            return Ok(Vec::new());
        }
        let events = self.shared.events(&self.resource, (self.seen, upto), limit)?;
        let is_part = events.len() == limit;
        self.seen = events.last().filter(|_| is_part).map_or(upto, |last| last.revision);
        Ok(events)
    }

    /// Lists a page of the objects of the resource.
    ///
    /// # Errors
    /// [`StoreError::Compacted`] when `range.at` cannot be shown any more.
    pub fn page(&self, range: Range<'_>, limit: usize) -> Result<Page, StoreError> {
        self.shared.list(&self.resource, range, limit, &mut |_| true)
    }

    /// Waits until [`Self::drain`] may find something.
    pub async fn changed(&mut self) {
        if self.wake.changed().await.is_err() {
            // The store is gone: nothing will ever change again.
            std::future::pending::<()>().await;
        }
    }
}
