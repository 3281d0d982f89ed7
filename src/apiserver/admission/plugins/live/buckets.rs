//! Buckets of tokens, one for each of those that have a limit of their own. So many of them are kept; who was not seen for the
//! longest time goes first, and begins with a full bucket when it comes back.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use tokio::time::Instant;

use super::super::settings::Limit;
use crate::digest;

#[derive(Debug)]
pub(in crate::admission::plugins) struct Buckets {
    limit: Limit,
    known: Mutex<Known>,
}

/// Names are kept as their digests: those of sources are as long as senders like.
#[derive(Debug, Default)]
struct Known {
    buckets: HashMap<String, Bucket>,
    /// Names by when they were seen last.
    seen: BTreeMap<u64, String>,
    turn: u64,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    tokens: f64,
    filled: Instant,
    turn: u64,
}

impl Buckets {
    pub(super) fn of(limit: Limit) -> Self {
        Self { limit, known: Mutex::default() }
    }

    /// Whether there is a token for `name`, which is taken then.
    pub(in crate::admission::plugins) fn take(&self, name: &str, now: Instant) -> bool {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let bucket = known.find(&digest::sha256_hex(name.as_bytes()), &self.limit, now);
        let waited = now.saturating_duration_since(bucket.filled).as_secs_f64();
        let refilled = waited.mul_add(f64::from(self.limit.per_second), bucket.tokens);
        let tokens = refilled.min(f64::from(self.limit.burst));
        if tokens < 1.0 {
            return false;
        }
        bucket.tokens = tokens - 1.0;
        bucket.filled = now;
        true
    }
}

impl Known {
    fn find(&mut self, name: &str, limit: &Limit, now: Instant) -> &mut Bucket {
        self.turn = self.turn.saturating_add(1);
        let turn = self.turn;
        match self.buckets.get(name) {
            Some(bucket) => drop(self.seen.remove(&bucket.turn)),
            None if self.buckets.len() >= limit.cached => {
                if let Some((_, oldest)) = self.seen.pop_first() {
                    self.buckets.remove(&oldest);
                }
            }
            None => {}
        }
        self.seen.insert(turn, name.to_owned());
        let full = Bucket { tokens: f64::from(limit.burst), filled: now, turn };
        let bucket = self.buckets.entry(name.to_owned()).or_insert(full);
        bucket.turn = turn;
        bucket
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
        let known = buckets.known.lock().unwrap();
        assert_eq!((known.buckets.len(), known.seen.len()), (2, 2));
    }
}
