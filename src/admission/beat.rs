//! A timer that is always the next one while requests come, so that theirs are not.
//!
//! A runtime that sleeps until its earliest timer is woken, with a system call, when an earlier one is set. Each request
//! sets some that hardly ever ring (for its body, its turn, its answer), and where no other was under way, one of those was
//! the earliest: a sixth of all requests woke the runtime for nothing. Twenty timers a second take their place.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::sleep;

/// Sooner than any limit of a request is over.
const PERIOD: Duration = Duration::from_millis(50);

/// Ends by itself a period after the last request; an idle process sleeps.
#[derive(Debug, Default)]
pub(super) struct Beat {
    /// Something has come since the last beat.
    asked: AtomicBool,
    beating: AtomicBool,
}

impl Beat {
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
            while self.asked.swap(false, Ordering::AcqRel) {
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
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_beats_once_while_requests_come_and_ends_after_them() {
        let beat = Arc::new(Beat::default());
        let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
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
}
