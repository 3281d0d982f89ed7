//! Decides what to do after a failed reconciliation: if only a change of the object helps, it waits for that;
//! temporary errors are retried with growing, random delays.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::key::Key;
use super::wait::jittered;

/// Whether trying again can help.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Remedy {
    /// Only a change of the object helps.
    Change,
    /// A conflict with another writer; the watch reports the newer object, and the timer is only a backup.
    Reread,
    /// Waiting may help.
    Wait,
    /// Waiting may help, and the server says how long.
    After(Duration),
    /// Rejected by authorization, validation or admission (401, 403, 422). The same request fails again until somebody changes a role,
    /// a policy or its data, which may happen without a change of the object: a controller may continue without the request,
    /// or wait.
    Refused,
}

/// Returns the remedy for a failed request.
#[must_use]
pub fn remedy(error: &kube::Error) -> Remedy {
    let kube::Error::Api(status) = error else { return Remedy::Wait };
    let asked = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
    match status.code {
        409 => Remedy::Reread,
        401 | 403 | 422 => Remedy::Refused,
        // A missing object also leaves the controller's store, and is then not reconciled again.
        _ if asked == 0 => Remedy::Wait,
        _ => Remedy::After(Duration::from_secs(asked.into())),
    }
}

const FIRST: Duration = Duration::from_millis(500);
/// The longest wait, also if a server requests a longer one.
const LONGEST: Duration = Duration::from_mins(2);

/// The number of failures in a row by object.
#[derive(Debug, Default)]
pub struct Backoff {
    failures: Mutex<HashMap<Key, u32>>,
}

impl Backoff {
    /// Counts a failure of `object`, and returns when to reconcile it again; None if only a change can help.
    pub fn after(&self, object: &Key, remedy: Remedy) -> Option<Duration> {
        match remedy {
            Remedy::Change => {
                self.reset(object);
                None
            }
            Remedy::Reread => Some(jittered(FIRST)),
            Remedy::Wait | Remedy::Refused => Some(jittered(self.count(object))),
            // The wait of the server plus a random part.
            Remedy::After(asked) => Some(asked.min(LONGEST) + jittered(self.count(object).min(asked))),
        }
    }

    fn count(&self, object: &Key) -> Duration {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let count = failures.entry(object.clone()).or_default();
        let wait = FIRST.saturating_mul(1 << (*count).min(16)).min(LONGEST);
        *count = count.saturating_add(1);
        wait
    }

    /// Forgets the failures of an object that was reconciled or deleted.
    pub fn reset(&self, object: &Key) {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).remove(object);
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;
    use serde_json::json;

    use super::*;

    fn key(uid: &str) -> Key {
        Key { namespace: "n".to_owned(), name: "a".to_owned(), uid: uid.to_owned() }
    }

    #[test]
    fn waits_grow_to_a_bound_and_start_again_after_success() {
        let backoff = Backoff::default();
        let wait = |uid: &str, bound: Duration| {
            let wait = backoff.after(&key(uid), Remedy::Wait).unwrap();
            assert!(bound / 2 <= wait && wait <= bound, "{wait:?} for {bound:?}");
        };
        (0..8).for_each(|power| wait("1", FIRST * (1 << power)));
        (0..40).for_each(|_| wait("1", LONGEST));
        // Created again with the same name: another object, without failures.
        wait("2", FIRST);
        backoff.reset(&key("1"));
        wait("1", FIRST);
        assert_eq!(backoff.after(&key("1"), Remedy::Change), None);
    }

    #[test]
    fn remedies_follow_what_the_server_says() {
        let failed = |code, seconds| {
            let answer = json!({"code": code, "details": {"retryAfterSeconds": seconds}});
            let status: Status = serde_json::from_value(answer).unwrap();
            remedy(&kube::Error::Api(Box::new(status)))
        };
        assert_eq!(failed(409, 0), Remedy::Reread);
        for refusal in [401, 403, 422] {
            assert_eq!(failed(refusal, 0), Remedy::Refused);
        }
        assert_eq!(failed(503, 7), Remedy::After(Duration::from_secs(7)));
        assert_eq!((failed(503, 0), failed(404, 0)), (Remedy::Wait, Remedy::Wait));
    }

    #[test]
    fn what_the_server_asks_for_is_kept_to_and_bounded() {
        let backoff = Backoff::default();
        let wait = backoff.after(&key("1"), Remedy::After(Duration::from_secs(7))).unwrap();
        assert!(wait >= Duration::from_secs(7) && wait <= Duration::from_secs(8), "{wait:?}");
        let wait = backoff.after(&key("1"), Remedy::After(Duration::from_hours(7))).unwrap();
        assert!(wait >= LONGEST && wait <= LONGEST * 2, "{wait:?}");
    }
}
