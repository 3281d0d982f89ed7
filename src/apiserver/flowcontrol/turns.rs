//! Schedules work: changes and long responses are computed on threads of their own, a few at a time, each until its
//! deadline. So the threads that serve connections are always available for reads, health checks and
//! shutdown.
//!
//! ```text
//! change ──► a place of its user ──► one of all places ──► body ──► lane of its size ──► thread
//! list, documents, the rights of who has ten thousands ──► share of its user ──► lane of lists ──► thread
//! ```
//!
//! A lane limits how many computations run at a time; while one waits for a webhook or the disk, the next one runs.
//! The cost of a change is bounded by its size, so small ones have a lane of their own: they never wait behind large
//! ones, and share the processors with at most one large one for each processor.

use std::any::Any;
use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::num::NonZero;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::ready;
use std::thread;

use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinError, spawn_blocking};
use tokio::time::{Instant, timeout_at};

use crate::identity::{Identity, MASTERS};
use crate::interrupt::{Interrupt, Interrupted, within};
use crate::status::Refusal;

/// The number of mutating requests that are processed at a time, as upstream: each may hold a body of 3 MiB, and the
/// objects made from it.
pub(crate) const MAX_CHANGES: usize = 200;
/// The number of them for one user who is not an administrator: a quarter, so that no user blocks the others.
const MAX_CHANGES_OF_ONE: usize = 50;
/// The size in bytes from which on a body is large. Most objects that people write are far smaller.
const LARGE: usize = 64 << 10;
/// The number of small changes that compute at a time, for each processor: so many share it without a long wait
/// for any of them.
const SMALL_PER_PROCESSOR: usize = 4;

/// Holds the places for changes, and the lanes.
#[derive(Debug)]
pub(crate) struct Turns {
    changes: Arc<Semaphore>,
    changers: Shares,
    small: Arc<Semaphore>,
    large: Arc<Semaphore>,
    lists: Arc<Semaphore>,
    listers: Shares,
}

/// Limits what each user may take of something, so that some is left for others.
#[derive(Debug)]
struct Shares {
    of_users: Mutex<HashMap<String, Arc<Semaphore>>>,
    each: usize,
}

impl Shares {
    fn of(each: usize) -> Self {
        Self { of_users: Mutex::default(), each }
    }

    /// Takes a permit of the share of `user`, waiting if necessary; None for administrators, whom upstream exempts, too.
    async fn take(&self, user: &Identity) -> Option<OwnedSemaphorePermit> {
        if user.groups.iter().any(|group| group == MASTERS) {
            return None;
        }
        let share = {
            let mut users = self.of_users.lock().unwrap_or_else(PoisonError::into_inner);
            // Users without running work are removed.
            users.retain(|_, share| Arc::strong_count(share) > 1);
            let share = users.entry(user.username.clone());
            Arc::clone(share.or_insert_with(|| Arc::new(Semaphore::new(self.each))))
        };
        share.acquire_owned().await.ok()
    }
}

/// The permit of one change, and that of its user.
#[derive(Debug)]
pub(crate) struct Place {
    _of_all: OwnedSemaphorePermit,
    _of_user: Option<OwnedSemaphorePermit>,
}

/// Says why work gave no result.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Its deadline has passed.
    TimedOut,
    /// It panicked with this message.
    Panicked(String),
}

impl From<Ended> for Refusal {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::TimedOut => Self::timed_out(),
            Ended::Panicked(text) => {
                tracing::error!(cause = text, "a request panicked");
                Self::panicked()
            }
        }
    }
}

/// Interrupts the work when the caller that waits for it is dropped.
struct Waiting(Arc<Interrupt>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl Default for Turns {
    fn default() -> Self {
        let processors = thread::available_parallelism().map_or(1, NonZero::get);
        let of = |places| Arc::new(Semaphore::new(places));
        Self {
            changes: of(MAX_CHANGES),
            changers: Shares::of(MAX_CHANGES_OF_ONE),
            small: of(processors * SMALL_PER_PROCESSOR),
            large: of(processors),
            lists: of(processors),
            listers: Shares::of((processors / 2).max(1)),
        }
    }
}

impl Turns {
    /// Returns the number of changes that are being processed.
    pub(crate) fn under_way(&self) -> usize {
        MAX_CHANGES.saturating_sub(self.changes.available_permits())
    }

    /// Takes a place for a change of `user`, waiting if necessary.
    pub(crate) async fn place(&self, user: &Identity) -> Option<Place> {
        let of_user = self.changers.take(user).await;
        let of_all = Arc::clone(&self.changes).acquire_owned().await.ok()?;
        Some(Place { _of_all: of_all, _of_user: of_user })
    }

    /// Returns the lane of a change with a body of so many bytes; one that changes `many` objects is large.
    pub(crate) fn lane(&self, bytes: usize, many: bool) -> Arc<Semaphore> {
        Arc::clone(if bytes < LARGE && !many { &self.small } else { &self.large })
    }

    /// Runs `work` for `user` on a thread of its own, in the lane of lists, and returns its result.
    pub(crate) async fn list<T, F>(
        &self,
        user: &Identity,
        until: Instant,
        work: impl FnOnce() -> F + Send + 'static,
    ) -> Result<T, Ended>
    where
        T: Send + 'static,
        F: Future<Output = T>,
    {
        // Waits before taking a thread: waiting threads would be missing for changes.
        let lists = Arc::clone(&self.lists);
        let turn = async { (self.listers.take(user).await, lists.acquire_owned().await) };
        let Ok((share, Ok(turn))) = timeout_at(until, turn).await else { return Err(Ended::TimedOut) };
        run(until, None, move || {
            let work = work();
            async move {
                let _turn = (share, turn);
                work.await
            }
        })
        .await
    }
}

/// Runs `work` on a thread of its own, computing in its turn in `lane`; interrupted at `until`, or when the caller no longer
/// waits. A write to the store that has begun by then is completed, and its result returned.
pub(crate) async fn run<T, F>(
    until: Instant,
    lane: Option<Arc<Semaphore>>,
    work: impl FnOnce() -> F + Send + 'static,
) -> Result<T, Ended>
where
    T: Send + 'static,
    F: Future<Output = T>,
{
    let waiting = Waiting(Arc::default());
    let (interrupt, runtime) = (Arc::clone(&waiting.0), Handle::current());
    let mut done = spawn_blocking(move || runtime.block_on(in_lane(lane, &interrupt, work())));
    let outcome = match timeout_at(until, &mut done).await {
        Ok(outcome) => outcome,
        Err(_) if waiting.0.end() => return Err(Ended::TimedOut),
        Err(_) => done.await,
    };
    match outcome {
        Ok(done) => done.ok_or(Ended::TimedOut),
        Err(error) => Err(ended(error)),
    }
}

/// Polls `work`, each step in its turn; None if it was interrupted.
async fn in_lane<T>(
    lane: Option<Arc<Semaphore>>,
    interrupt: &Arc<Interrupt>,
    work: impl Future<Output = T>,
) -> Option<T> {
    let mut work = pin!(work);
    let mut turn: Option<Pin<Box<dyn Future<Output = _> + Send>>> = None;
    poll_fn(|context| {
        interrupt.wake_at_end(context.waker());
        if interrupt.is_over() {
            return None.into();
        }
        let _turn = match &lane {
            None => None,
            Some(lane) => {
                let acquiring = turn.get_or_insert_with(|| Box::pin(Arc::clone(lane).acquire_owned()));
                let acquired = ready!(acquiring.as_mut().poll(context));
                turn = None;
                acquired.ok()
            }
        };
        within(interrupt, || work.as_mut().poll(context)).map(Some)
    })
    .await
}

fn ended(error: JoinError) -> Ended {
    match error.try_into_panic() {
        Ok(payload) if payload.is::<Interrupted>() => Ended::TimedOut,
        Ok(payload) => Ended::Panicked(panic_text(payload.as_ref())),
        Err(_) => Ended::Panicked("the server is stopping".to_owned()),
    }
}

/// Returns the message of a panic, if it is a string.
fn panic_text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}

#[cfg(test)]
mod tests;
