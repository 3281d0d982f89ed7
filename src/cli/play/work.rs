//! Limits evaluations: how many run at a time, and how long each may take.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::time::{Duration, Instant};

use admit_policy::asking;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// Evaluations at a time: a page sends one after the other, and a person has few pages.
const AT_A_TIME: usize = 4;

/// Runs evaluations within limits.
#[derive(Clone, Debug)]
pub(super) struct Bounds {
    places: Arc<Semaphore>,
    time: Duration,
}

/// Why an evaluation has no result.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Undone {
    /// The maximum number of evaluations is running.
    Busy,
    TimedOut,
    /// The evaluation panicked, which is a bug of this program.
    Internal,
}

/// The payload of the unwinding when the time is over. It is not a panic, so that none is reported.
struct Over;

thread_local! {
    /// When this thread's evaluation should finish early with what it has, and when it is aborted.
    static END: Cell<Option<(Instant, Instant)>> = const { Cell::new(None) };
}

impl Bounds {
    pub(super) fn new(time: Duration) -> Self {
        Self { places: Arc::new(Semaphore::new(AT_A_TIME)), time }
    }

    /// Returns how long one evaluation may take.
    pub(super) fn time(&self) -> Duration {
        self.time
    }

    /// Runs `work` on a thread for blocking work. Its permit is kept until the work has really ended.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Undone> {
        let place = Arc::clone(&self.places).try_acquire_owned().map_err(|_| Undone::Busy)?;
        let time = self.time;
        let working = spawn_blocking(move || {
            let _place = place;
            let now = Instant::now();
            END.set(now.checked_add(time / 5 * 4).zip(now.checked_add(time)));
            let outcome = panic::catch_unwind(AssertUnwindSafe(|| asking(ask, work)));
            END.set(None);
            outcome.map_err(|reason| if reason.is::<Over>() { Undone::TimedOut } else { Undone::Internal })
        });
        match timeout(time, working).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => Err(Undone::Internal),
            Err(_) => Err(Undone::TimedOut),
        }
    }
}

/// Whether this thread's evaluation should finish with what it has: a fifth of its time is left for that.
pub(super) fn is_nearly_over() -> bool {
    END.get().is_some_and(|(soon, _)| Instant::now() >= soon)
}

fn is_over() -> bool {
    END.get().is_some_and(|(_, end)| Instant::now() >= end)
}

/// Aborts the evaluation of this thread if its time is over.
fn ask() {
    // Drops during the unwinding of a panic must not unwind again.
    if is_over() && !std::thread::panicking() {
        panic::resume_unwind(Box::new(Over));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use admit_policy::Pace;

    use super::*;

    #[tokio::test]
    async fn work_that_asks_ends_when_its_time_is_over() {
        let bounds = Bounds::new(Duration::from_millis(1));
        let for_ever = || {
            let pace = Pace::default();
            while !pace.is_over() {}
        };
        assert_eq!(bounds.run(for_ever).await, Err(Undone::TimedOut));
        // Waits until the thread has returned its permit.
        let all = u32::try_from(AT_A_TIME).unwrap();
        drop(bounds.places.acquire_many(all).await.unwrap());
    }

    #[tokio::test]
    async fn no_more_runs_than_may() {
        let bounds = Bounds::new(Duration::from_secs(60));
        let mut held = Vec::new();
        for _ in 0..AT_A_TIME {
            let (begun, begins) = mpsc::channel();
            let (release, hold) = mpsc::channel::<()>();
            let running = bounds.clone();
            let work = tokio::spawn(async move {
                running.run(move || begun.send(()).map(|()| hold.recv()).is_ok()).await
            });
            tokio::task::spawn_blocking(move || begins.recv()).await.unwrap().unwrap();
            held.push((release, work));
        }
        assert_eq!(bounds.run(|| ()).await, Err(Undone::Busy));
        for (release, work) in held {
            drop(release);
            assert_eq!(work.await.unwrap(), Ok(true));
        }
        assert_eq!(bounds.run(|| 1).await, Ok(1));
        let panics = || {
            panic::resume_unwind(Box::new(1));
        };
        assert_eq!(bounds.run(panics).await, Err(Undone::Internal));
    }
}
