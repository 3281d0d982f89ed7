//! Computes exponential backoff: each wait is twice as long as the one before, up to a limit, with jitter.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

/// A wait that doubles whenever it is used, until it is reset.
#[derive(Clone, Debug)]
pub struct GrowingWait {
    first: Duration,
    longest: Duration,
    next: Duration,
}

impl GrowingWait {
    #[must_use]
    pub fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, next: first }
    }

    /// Returns the next wait with jitter; the one after it is twice as long.
    pub fn grow(&mut self) -> Duration {
        let due = self.next;
        self.next = due.saturating_mul(2).min(self.longest);
        jittered(due)
    }

    pub fn reset(&mut self) {
        self.next = self.first;
    }

    /// Returns the limit.
    #[must_use]
    pub fn longest(&self) -> Duration {
        self.longest
    }
}

/// Returns a random time between half of `wait` and all of it, so that clients that failed together do not retry together.
#[must_use]
pub fn jittered(wait: Duration) -> Duration {
    let random = u16::try_from(RandomState::new().hash_one(0) & 0xffff).unwrap_or(0);
    wait / 2 + (wait / 2).mul_f64(f64::from(random) / 65536.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_bound_and_begin_again() {
        let mut wait = GrowingWait::new(Duration::from_millis(100), Duration::from_secs(1));
        let mut within = |bound: u64| {
            let (due, bound) = (wait.grow(), Duration::from_millis(bound));
            assert!(bound / 2 <= due && due <= bound, "{due:?} for {bound:?}");
        };
        [100, 200, 400, 800, 1000, 1000].into_iter().for_each(&mut within);
        wait.reset();
        let due = wait.grow();
        assert!(due <= Duration::from_millis(100), "{due:?}");
    }
}
