//! Limits how many exchanges with the service run at a time. Each needs a connection and buffers, and a slow service keeps them
//! busy: with the limit, they do not grow with the number of waiting archives.

use std::sync::Arc;

use tokio::sync::{Semaphore, SemaphorePermit};

/// Uploads at a time: enough to fill a line; each buffers a megabyte at most while the service accepts nothing.
const UPLOADS_AT_ONCE: usize = 8;
/// Queries at a time; a response may have 8 MiB. They have their own limit, so that no query waits for uploads.
const QUESTIONS_AT_ONCE: usize = 4;

/// The permits for exchanges; clones share them.
#[derive(Clone, Debug)]
pub struct ConcurrencyLimit {
    uploads: Arc<Semaphore>,
    questions: Arc<Semaphore>,
}

impl Default for ConcurrencyLimit {
    fn default() -> Self {
        Self {
            uploads: Arc::new(Semaphore::new(UPLOADS_AT_ONCE)),
            questions: Arc::new(Semaphore::new(QUESTIONS_AT_ONCE)),
        }
    }
}

impl ConcurrencyLimit {
    /// Waits for the permit of an upload, which is held until it is dropped. None only if the semaphore is closed, which never
    /// happens.
    pub(super) async fn upload(&self) -> Option<SemaphorePermit<'_>> {
        self.uploads.acquire().await.ok()
    }

    /// Waits for the permit of a query.
    pub(super) async fn question(&self) -> Option<SemaphorePermit<'_>> {
        self.questions.acquire().await.ok()
    }
}
