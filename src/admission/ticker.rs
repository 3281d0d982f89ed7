//! What is done some times a second while requests come or wait, so that none of them needs a timer for it.
//!
//! A timer of each request's own would be set under the lock of all timers and taken back under it, and a runtime that sleeps
//! until its earliest timer is woken, with a system call, when an earlier one is set. Timers of requests hardly ever ring.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::sleep;

/// Sooner than any limit of a request is over.
const PERIOD: Duration = Duration::from_millis(50);

/// Ends by itself a period after the last request; an idle process sleeps.
pub(super) struct Ticker {
    /// What is done; says whether it is to be done again though no request comes.
    each: Box<dyn Fn() -> bool + Send + Sync>,
    /// Something has come since the last beat.
    asked: AtomicBool,
    beating: AtomicBool,
}

impl fmt::Debug for Ticker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticker").finish_non_exhaustive()
    }
}

impl Ticker {
    /// Does this at each beat.
    pub(super) fn new(each: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self { each: Box::new(each), asked: AtomicBool::new(false), beating: AtomicBool::new(false) }
    }

    /// A request has come: there is a beat within the next period, on the runtime of this task.
    pub(super) fn keep(self: &Arc<Self>) {
        // Nearly always so: a read alone leaves the line in the caches of all processors.
        if self.asked.load(Ordering::Relaxed) {
            return;
        }
        self.asked.store(true, Ordering::Release);
        if !self.beating.swap(true, Ordering::AcqRel) {
            tokio::spawn(Arc::clone(self).beat());
        }
    }

    async fn beat(self: Arc<Self>) {
        loop {
            while self.asked.swap(false, Ordering::AcqRel) | (self.each)() {
                sleep(PERIOD).await;
            }
            self.beating.store(false, Ordering::Release);
            // Who asked between these two lines found it beating, and leaves it to us.
            if !self.asked.load(Ordering::Acquire) || self.beating.swap(true, Ordering::AcqRel) {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use tokio::time::advance;

    use super::*;

    fn tasks() -> usize {
        tokio::runtime::Handle::current().metrics().num_alive_tasks()
    }

    #[tokio::test(start_paused = true)]
    async fn it_beats_once_while_requests_come_and_ends_after_them() {
        let beat = Arc::new(Ticker::new(|| false));
        for _ in 0..3 {
            for _ in 0..10 {
                beat.keep();
                beat.keep();
                advance(PERIOD / 2).await;
                assert_eq!(tasks(), 1);
            }
            while tasks() > 0 {
                advance(PERIOD).await;
            }
            assert_eq!(Arc::strong_count(&beat), 1);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn it_goes_on_while_there_is_something_to_do() {
        let left = Arc::new(AtomicU32::new(10));
        let counted = Arc::clone(&left);
        let beat = Arc::new(Ticker::new(move || {
            counted.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
        }));
        beat.keep();
        while tasks() > 0 {
            advance(PERIOD).await;
        }
        assert_eq!(left.load(Ordering::SeqCst), 0);
    }
}
