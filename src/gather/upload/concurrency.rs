//! How many exchanges with the service are under way at a time. Each costs a connection and buffers on its way, and a service
//! that answers slowly keeps them: what is bounded here does not grow with the number of archives that wait.

use std::sync::Arc;

use tokio::sync::{Semaphore, SemaphorePermit};

/// Uploads at a time: enough to fill a line, and a megabyte each at most while the service takes nothing.
const UPLOADS_AT_ONCE: usize = 8;
/// Questions at a time, of which an answer may take 8 MiB. They have turns of their own, so that no question waits for uploads.
const QUESTIONS_AT_ONCE: usize = 4;

/// Turns of exchanges; clones share them.
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
    /// Waits for the turn of an upload, which lasts until the permit is dropped. None only when there are no turns any more,
    /// which never happens: nobody closes them.
    pub(super) async fn upload(&self) -> Option<SemaphorePermit<'_>> {
        self.uploads.acquire().await.ok()
    }

    /// The same for a question.
    pub(super) async fn question(&self) -> Option<SemaphorePermit<'_>> {
        self.questions.acquire().await.ok()
    }
}
