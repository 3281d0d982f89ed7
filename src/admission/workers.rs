//! Runs decisions on a fixed number of threads with a known stack size, behind a queue of bounded length.
//!
//! It does not use tokio's blocking threads: there may be 512 of those, so that overload would use much memory and cause long
//! waits, and they share their stack size with everything else that blocks. Work that does not fit in the queue is rejected
//! immediately, and work that waited for too long soon after, even if no thread becomes free. The caller's failure policy
//! then applies sooner than after any wait.
//!
//! INVARIANT: the waiting time is limited directly, not by the length of the queue. How long a full queue takes
//! depends on the cost of policies; a queue that stays full adds to every latency and does not increase the throughput.

use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::queue::Queue;
use super::ticker::Ticker;
use crate::telemetry::panic_text;

/// The stack size: enough for parsing, matching and evaluating documents at the depth limit, also in unoptimised builds. Pages
/// that are never used cost nothing.
const STACK: usize = 32 * 1024 * 1024;
/// The number of waiting jobs per thread.
const QUEUE_PER_THREAD: usize = 64;
/// How long work may wait for a thread, plus or minus one tick. With the work itself, a response takes less than a second under
/// any load.
const MAX_WAIT: Duration = Duration::from_millis(600);

type Job = Box<dyn FnOnce() + Send>;

/// Passes work to the threads, which end when the last handle is dropped.
#[derive(Clone)]
pub struct Workers {
    queue: Arc<Open>,
    beat: Arc<Ticker>,
}

/// Closes the queue when the last handle is dropped.
struct Open(Arc<Queue<Job>>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Why there is no result.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NotDone {
    /// The queue is full, or no thread was free in time.
    Overloaded,
    /// The work panicked with this message.
    Panicked(String),
}

impl fmt::Debug for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workers").finish_non_exhaustive()
    }
}

impl Workers {
    /// Starts as many threads as there are processors, but at least two, so that one slow request does not block all others.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn start() -> io::Result<Self> {
        Self::of(thread::available_parallelism().map_or(2, |count| count.get().max(2)))
    }

    pub(super) fn of(threads: usize) -> io::Result<Self> {
        let jobs = Arc::new(Queue::new(threads * QUEUE_PER_THREAD));
        // Created before the threads, so that those that were started end if another cannot be.
        let queue = Arc::new(Open(Arc::clone(&jobs)));
        for number in 0..threads {
            let jobs = Arc::clone(&jobs);
            thread::Builder::new()
                .name(format!("decide-{number}"))
                .stack_size(STACK)
                .spawn(move || work(&jobs))?;
        }
        let jobs = Arc::downgrade(&jobs);
        let beat = Ticker::new(move || jobs.upgrade().is_some_and(|jobs| give_up_late(&jobs)));
        Ok(Self { queue, beat: Arc::new(beat) })
    }

    /// Runs `work` on a thread and returns its result; `work` may check whether its caller has gone. Work whose caller is gone is not
    /// started, nor is work that waited for [`MAX_WAIT`] and a tick: that is rejected then, even if all threads are busy.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Gone<'_>) -> T + Send + 'static,
    ) -> Result<T, NotDone> {
        let (sender, result) = oneshot::channel();
        let job: Job = Box::new(move || {
            if sender.is_closed() {
                return;
            }
            // After a panic the closure is dropped, with any inconsistent state.
            let done = catch_unwind(AssertUnwindSafe(|| work(&|| sender.is_closed())));
            let _ = sender.send(done.map_err(|payload| NotDone::Panicked(panic_text(payload.as_ref()))));
        });
        if self.queue.0.put(job).is_err() {
            return Err(NotDone::Overloaded);
        }
        self.beat.keep();
        // Started work always sends a result, so its absence means that it was given up.
        result.await.unwrap_or(Err(NotDone::Overloaded))
    }
}

/// Drops work that has waited for too long, which notifies its callers; returns whether other work waits.
fn give_up_late(jobs: &Queue<Job>) -> bool {
    // The clock began less than MAX_WAIT ago, so nothing can be late.
    let Some(then) = Instant::now().checked_sub(MAX_WAIT) else { return true };
    let (late, others) = jobs.give_up(then);
    // Dropped outside of the queue's lock, since it may be large.
    drop(late);
    others
}

/// Returns whether the caller of the work has gone.
pub(super) type Gone<'a> = dyn Fn() -> bool + 'a;

fn work(jobs: &Queue<Job>) {
    while let Some(job) = jobs.take() {
        job();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::time::Instant;

    use super::*;

    #[tokio::test]
    async fn a_panic_ends_one_piece_of_work() {
        let workers = Workers::of(1).unwrap();
        let ended = workers.run(|_| -> u8 { panic!("number {}", 7) }).await;
        assert_eq!(ended, Err(NotDone::Panicked("number 7".to_owned())));
        assert_eq!(workers.run(|_| 8).await, Ok(8));
    }

    /// Starts work that blocks until the barrier is met; returns once a thread runs it.
    async fn busy(workers: &Workers) -> (tokio::task::JoinHandle<Result<(), NotDone>>, Arc<Barrier>) {
        let (started, gate) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
        let (inside, end, workers) = (Arc::clone(&started), Arc::clone(&gate), workers.clone());
        let blocking = tokio::spawn(async move {
            let wait = move |_: &Gone<'_>| {
                inside.wait();
                end.wait();
            };
            workers.run(wait).await
        });
        tokio::task::spawn_blocking(move || started.wait()).await.unwrap();
        (blocking, gate)
    }

    #[tokio::test]
    async fn what_does_not_fit_in_the_queue_is_refused_at_once() {
        let workers = Workers::of(1).unwrap();
        let (blocking, gate) = busy(&workers).await;
        let mut waiting: Vec<_> = (0..QUEUE_PER_THREAD).map(|_| Box::pin(workers.run(|_| ()))).collect();
        for work in &mut waiting {
            assert!(futures::poll!(work).is_pending());
        }
        assert_eq!(workers.run(|_| ()).await, Err(NotDone::Overloaded));
        tokio::task::spawn_blocking(move || gate.wait()).await.unwrap();
        assert_eq!(blocking.await.unwrap(), Ok(()));
        for work in waiting {
            let done = work.await;
            // On a slow machine, their waiting time may be over.
            assert!(
                matches!(done, Ok(()) | Err(NotDone::Overloaded)),
                "what was queued is answered: {done:?}"
            );
        }
    }

    #[tokio::test]
    async fn what_waited_too_long_is_refused_while_all_threads_are_held_and_is_not_done() {
        let workers = Workers::of(1).unwrap();
        let (blocking, gate) = busy(&workers).await;
        let held = Arc::new(());
        let holds = Arc::clone(&held);
        let late = move |_: &Gone<'_>| {
            let _held = holds;
            panic!("nobody waits for this any more")
        };
        let queued = Instant::now();
        assert_eq!(workers.run::<()>(late).await, Err(NotDone::Overloaded));
        assert!(queued.elapsed() >= MAX_WAIT);
        assert_eq!(Arc::strong_count(&held), 1, "what it held is given back at once");
        tokio::task::spawn_blocking(move || gate.wait()).await.unwrap();
        assert_eq!(blocking.await.unwrap(), Ok(()));
        assert_eq!(workers.run(|_| 9).await, Ok(9));
    }

    #[tokio::test]
    async fn work_that_was_begun_is_waited_for_and_hears_when_nobody_waits_any_more() {
        let workers = Workers::of(1).unwrap();
        let (blocking, gate) = busy(&workers).await;
        let begun = Instant::now();
        tokio::task::spawn_blocking(move || {
            while begun.elapsed() <= MAX_WAIT {
                thread::yield_now();
            }
            gate.wait()
        })
        .await
        .unwrap();
        assert_eq!(blocking.await.unwrap(), Ok(()), "longer than anything may wait for a thread");

        let (began, begun) = oneshot::channel();
        let (left, heard) = oneshot::channel();
        let work = move |gone: &Gone<'_>| {
            began.send(()).unwrap();
            while !gone() {
                thread::yield_now();
            }
            left.send(()).unwrap();
        };
        let shared = workers.clone();
        let caller = tokio::spawn(async move { shared.run(work).await });
        begun.await.unwrap();
        caller.abort();
        heard.await.unwrap();
        assert_eq!(workers.run(|_| 10).await, Ok(10));
    }

    #[tokio::test]
    async fn threads_end_with_the_last_handle() {
        let workers = Workers::of(2).unwrap();
        let (other, jobs) = (workers.clone(), Arc::downgrade(&workers.queue.0));
        drop(workers);
        assert_eq!(other.run(|_| 1).await, Ok(1), "not with the first");
        drop(other);
        let until = Instant::now() + Duration::from_secs(20);
        while jobs.strong_count() > 0 {
            assert!(Instant::now() < until, "{} threads still hold the queue", jobs.strong_count());
            thread::yield_now();
        }
    }

    #[tokio::test]
    async fn work_may_recurse_as_deep_as_documents_and_expressions_do() {
        fn deep(levels: u32) -> u32 {
            let room = std::hint::black_box([0_u8; 8 * 1024]);
            if levels == 0 { u32::from(room[0]) } else { deep(levels - 1) + 1 }
        }
        assert_eq!(Workers::of(1).unwrap().run(|_| deep(1_000)).await, Ok(1_000));
    }
}
