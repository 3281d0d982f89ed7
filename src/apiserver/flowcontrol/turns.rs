//! Schedules work: changes and long responses are computed on threads of their own, a few at a time, each until its
//! deadline. So the threads that read and write connections are always available for reads, health checks and
//! shutdown.
//!
//! ```text
//! change ──► a place of its user ──► one of all places ──► body ──► lane of its size ──► thread
//! list, documents, the rights of who has ten thousands ──► share of its user ──► lane of lists ──► thread
//! ```
//!
//! A lane limits how many computations run at a time; one that waits for a webhook or the disk computes nothing, and
//! lets the next one run meanwhile. The cost of a change is bounded by its size, so small ones have a lane of their
//! own: they never wait behind large ones, and share the processors with as many of them as there are processors.

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

/// The number of mutating requests that are processed at a time, as upstream: each may hold a body of 3 MiB, and what
/// was made of it.
pub(crate) const MAX_CHANGES: usize = 200;
/// Of one user, who is no administrator: a quarter, so that nobody keeps the others out.
const MAX_CHANGES_OF_ONE: usize = 50;
/// From this size on a body is a large one. Most objects that people write are far below; the cost of one that is below, too.
const LARGE: usize = 64 << 10;
/// Changes with small bodies that compute at one time, for each processor: that many share it without one of them waiting
/// for long.
const SMALL_PER_PROCESSOR: usize = 4;

/// The places, and the lanes.
#[derive(Debug)]
pub(crate) struct Turns {
    changes: Arc<Semaphore>,
    changers: Shares,
    small: Arc<Semaphore>,
    large: Arc<Semaphore>,
    lists: Arc<Semaphore>,
    listers: Shares,
}

/// What one user may take of something, so that there is some left for the others.
#[derive(Debug)]
struct Shares {
    of_users: Mutex<HashMap<String, Arc<Semaphore>>>,
    each: usize,
}

impl Shares {
    fn of(each: usize) -> Self {
        Self { of_users: Mutex::default(), each }
    }

    /// A part of the share of `user`, as soon as there is one; None for administrators, whom upstream exempts, too.
    async fn take(&self, user: &Identity) -> Option<OwnedSemaphorePermit> {
        if user.groups.iter().any(|group| group == MASTERS) {
            return None;
        }
        let share = {
            let mut users = self.of_users.lock().unwrap_or_else(PoisonError::into_inner);
            // Whoever has nothing under way is forgotten.
            users.retain(|_, share| Arc::strong_count(share) > 1);
            let share = users.entry(user.username.clone());
            Arc::clone(share.or_insert_with(|| Arc::new(Semaphore::new(self.each))))
        };
        share.acquire_owned().await.ok()
    }
}

/// The place of one change, and the one that it takes from its user.
#[derive(Debug)]
pub(crate) struct Place {
    _of_all: OwnedSemaphorePermit,
    _of_user: Option<OwnedSemaphorePermit>,
}

/// Why there is no answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Its time was over.
    TimedOut,
    /// It panicked, and said this.
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

/// Ends the work that nobody waits for any more.
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
    /// Changes that are under way.
    pub(crate) fn under_way(&self) -> usize {
        MAX_CHANGES.saturating_sub(self.changes.available_permits())
    }

    /// A place for a change of `user`, as soon as there is one.
    pub(crate) async fn place(&self, user: &Identity) -> Option<Place> {
        let of_user = self.changers.take(user).await;
        let of_all = Arc::clone(&self.changes).acquire_owned().await.ok()?;
        Some(Place { _of_all: of_all, _of_user: of_user })
    }

    /// The lane of a change with so many bytes; one that changes `many` objects is a large one.
    pub(crate) fn lane(&self, bytes: usize, many: bool) -> Arc<Semaphore> {
        Arc::clone(if bytes < LARGE && !many { &self.small } else { &self.large })
    }

    /// What `work` answers for `user`, on a thread of its own and in the lane of lists.
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
        // Waited for here: threads that wait are those that changes need.
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

/// What `work` answers, on a thread of its own: computing in its turn in `lane`, ended at `until` or when nobody waits for
/// it any more. What it has begun to store by then is done to its end, and answered.
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

/// `work`, each step of it in its turn; None when it was ended.
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

/// What a panic said, as far as it is text.
fn panic_text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}

#[cfg(test)]
mod tests;
