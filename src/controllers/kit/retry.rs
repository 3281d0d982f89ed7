//! What to do after a failed reconciliation: an object that cannot be acted on waits for its next change, anything
//! that may pass is tried again, later each time and never in step with other objects.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use kube::runtime::controller::Action;

/// Whether trying again can help.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Remedy {
    /// Only a change of the object helps.
    Change,
    /// Somebody else wrote first; the watch brings the newer object, the timer only backs it up.
    Reread,
    /// Waiting may help.
    Wait,
}

/// The remedy for a failed request.
pub fn remedy(error: &kube::Error) -> Remedy {
    let kube::Error::Api(status) = error else { return Remedy::Wait };
    match status.code {
        409 => Remedy::Reread,
        // A missing object leaves the controller's store as well, and is then not looked at again. A refusal by
        // validation or admission may pass: policies and rights change without the object changing.
        _ => Remedy::Wait,
    }
}

const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_mins(2);

/// Failures in a row by object.
#[derive(Debug, Default)]
pub struct Backoff {
    failures: Mutex<HashMap<String, u32>>,
    jitter: RandomState,
}

impl Backoff {
    /// Counts a failure of `object` and says when to look at it again.
    pub fn after(&self, object: &str, remedy: Remedy) -> Action {
        self.wait(object, remedy).map_or_else(Action::await_change, Action::requeue)
    }

    fn wait(&self, object: &str, remedy: Remedy) -> Option<Duration> {
        let longest = match remedy {
            Remedy::Change => {
                self.reset(object);
                return None;
            }
            Remedy::Reread => FIRST,
            Remedy::Wait => {
                let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
                let count = failures.entry(object.to_owned()).or_default();
                let wait = FIRST.saturating_mul(1 << (*count).min(16)).min(LONGEST);
                *count = count.saturating_add(1);
                wait
            }
        };
        Some(self.spread(object, longest))
    }

    /// Forgets the failures of an object that went well or is gone.
    pub fn reset(&self, object: &str) {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).remove(object);
    }

    /// Between half of `wait` and all of it: objects that failed together do not come back together.
    fn spread(&self, object: &str, wait: Duration) -> Duration {
        let seed = self.jitter.hash_one((object, std::time::Instant::now()));
        wait / 2 + (wait / 2).mul_f64(f64::from(u16::try_from(seed & 0xffff).unwrap_or(0)) / 65536.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_bound_and_start_again_after_success() {
        let backoff = Backoff::default();
        let wait = |bound: Duration| {
            let wait = backoff.wait("a", Remedy::Wait).unwrap();
            assert!(bound / 2 <= wait && wait <= bound, "{wait:?} for {bound:?}");
        };
        (0..8).for_each(|power| wait(FIRST * (1 << power)));
        (0..40).for_each(|_| wait(LONGEST));
        backoff.reset("a");
        wait(FIRST);
        assert_eq!(backoff.wait("a", Remedy::Change), None);
    }
}
