//! Holds token buckets, one for each key that has a limit of its own. Their number is bounded; the least recently used bucket is
//! dropped first, and is full when its key comes back.

use std::sync::{Mutex, PoisonError};

use tokio::time::Instant;

use super::super::settings::Limit;
use super::recent::Recent;
use crate::digest;

#[derive(Debug)]
pub(in crate::admission::plugins) struct Buckets {
    limit: Limit,
    known: Mutex<Recent<Bucket>>,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    tokens: f64,
    filled: Instant,
}

impl Buckets {
    pub(super) fn of(limit: Limit) -> Self {
        Self { limit, known: Mutex::new(Recent::of(limit.cached)) }
    }

    /// Takes a token for `name`; returns false if there is none.
    pub(in crate::admission::plugins) fn take(&self, name: &str, now: Instant) -> bool {
        let name = digest::sha256_hex(name.as_bytes());
        let full = f64::from(self.limit.burst);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let bucket = known.get(&name).copied().unwrap_or(Bucket { tokens: full, filled: now });
        let waited = now.saturating_duration_since(bucket.filled).as_secs_f64();
        let tokens = waited.mul_add(f64::from(self.limit.per_second), bucket.tokens).min(full);
        let taken = tokens >= 1.0;
        let left = if taken { Bucket { tokens: tokens - 1.0, filled: now } } else { bucket };
        known.insert(&name, left);
        taken
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::super::settings::LimitKind;
    use super::*;

    #[test]
    fn a_bucket_is_full_at_first_and_fills_as_time_goes() {
        let limit = Limit { kind: LimitKind::User, per_second: 2, burst: 3, cached: 10 };
        let buckets = Buckets::of(limit);
        let start = Instant::now();
        let taken = |millis: u64| buckets.take("ann", start + Duration::from_millis(millis));
        assert_eq!([0, 0, 0, 0].map(taken), [true, true, true, false]);
        assert_eq!([499, 500, 500].map(taken), [false, true, false]);
        assert_eq!([60_000; 4].map(taken), [true, true, true, false], "no more than at first");
        assert!(buckets.take("ben", start), "others have their own");
    }

    #[test]
    fn who_was_not_seen_for_long_is_forgotten() {
        let limit = Limit { kind: LimitKind::User, per_second: 1, burst: 1, cached: 2 };
        let buckets = Buckets::of(limit);
        let now = Instant::now();
        let taken = |name: &str| buckets.take(name, now);
        assert_eq!(["a", "b", "a", "b"].map(taken), [true, true, false, false]);
        // `c` takes the place of `a`, which was seen before `b`.
        assert_eq!(["c", "b", "a"].map(taken), [true, false, true]);
        assert_eq!(buckets.known.lock().unwrap().len(), 2);
    }
}
