//! Runs a task periodically while requests arrive or wait, so that no request needs a timer of its own.
//!
//! Timers of single requests would be set and removed under the lock of all timers, and a runtime that sleeps until its earliest
//! timer is woken by a system call when an earlier one is set. These timers hardly ever fire.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::sleep;

/// The period, shorter than any time limit of a request.
const PERIOD: Duration = Duration::from_millis(50);

/// The periodic task. It stops by itself one period after the last request, so that an idle process sleeps.
pub(super) struct Ticker {
    /// The task; returns whether it must run again even if no request arrives.
    each: Box<dyn Fn() -> bool + Send + Sync>,
    /// Whether a request has arrived since the last run.
    asked: AtomicBool,
    beating: AtomicBool,
}

impl fmt::Debug for Ticker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticker").finish_non_exhaustive()
    }
}

impl Ticker {
    /// Creates a ticker that runs `each` in each period.
    pub(super) fn new(each: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self { each: Box::new(each), asked: AtomicBool::new(false), beating: AtomicBool::new(false) }
    }

    /// Reports a request: the task runs within the next period, on the runtime of the caller.
    pub(super) fn keep(self: &Arc<Self>) {
        // This is the usual case: reading alone leaves the cache line shared by all processors.
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
            // A request that arrived between these two lines found the ticker running, so it has to continue.
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
