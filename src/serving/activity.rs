//! Counts the requests of one connection: how many are in flight, and how long the connection has been idle.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::{Instant, sleep};

/// The requests in flight on one connection. Clones share the same counts.
#[derive(Clone, Debug)]
pub struct Activity(Arc<Counts>);

#[derive(Debug)]
struct Counts {
    begun: AtomicU64,
    /// INVARIANT: never more than `begun`; read before it, so that equal numbers were equal at that moment.
    ended: AtomicU64,
    /// Milliseconds from `began` to the last activity of the caller, or the last response.
    stirred: AtomicU64,
    began: Instant,
}

/// A request in flight, from when its head is complete until this value is dropped.
#[derive(Debug)]
#[must_use = "the request ends with the value"]
pub struct UnderWay(Activity);

impl Activity {
    /// Creates the counts of a new connection; with the same `began`, idle times of connections can be compared.
    pub(crate) fn since(began: Instant) -> Self {
        let counts =
            Counts { begun: AtomicU64::new(0), ended: AtomicU64::new(0), stirred: AtomicU64::new(0), began };
        let activity = Self(Arc::new(counts));
        activity.stirs();
        activity
    }

    /// Starts a request: its head is complete.
    pub fn begin(&self) -> UnderWay {
        self.0.begun.fetch_add(1, Ordering::AcqRel);
        UnderWay(self.clone())
    }

    /// Restarts the idle time: a handshake is over, or a request head begins.
    pub(crate) fn stirs(&self) {
        let now = Instant::now().duration_since(self.0.began);
        self.0.stirred.store(u64::try_from(now.as_millis()).unwrap_or(u64::MAX), Ordering::Release);
    }

    /// Returns for how long no request was in flight; None while one is.
    pub(crate) fn idle(&self, now: Instant) -> Option<Duration> {
        let ended = self.0.ended.load(Ordering::Acquire);
        let stirred = self.0.began + Duration::from_millis(self.0.stirred.load(Ordering::Acquire));
        (ended == self.begun()).then(|| now.saturating_duration_since(stirred))
    }

    /// Whether a request is in flight.
    #[must_use]
    pub fn is_at_work(&self) -> bool {
        self.idle(Instant::now()).is_none()
    }

    /// Completes after the connection was idle for `limit`, before twice that time.
    pub(crate) async fn idle_for(&self, limit: Duration) {
        loop {
            let left = self.idle(Instant::now()).map_or(limit, |idle| limit.saturating_sub(idle));
            if left.is_zero() {
                return;
            }
            sleep(left).await;
        }
    }

    /// Whether a request head was ever received.
    pub(crate) fn has_asked(&self) -> bool {
        self.begun() > 0
    }

    /// Returns the number of beginnings and ends of requests so far. If requests do not overlap, an odd number means that one is
    /// in flight.
    pub(crate) fn turns(&self) -> u64 {
        self.0.ended.load(Ordering::Acquire) + self.begun()
    }

    fn begun(&self) -> u64 {
        self.0.begun.load(Ordering::Acquire)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.stirs();
        self.0.0.ended.fetch_add(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Duration = Duration::from_secs(90);

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_idle_once_nothing_was_asked_for_so_long() {
        let start = Instant::now();
        let activity = Activity::since(start);
        let watching = activity.begin();
        let watch = async {
            sleep(IDLE * 5).await;
            drop(watching);
        };
        let ((), ()) = tokio::join!(activity.idle_for(IDLE), watch);
        let idle = start.elapsed();
        assert!(idle >= IDLE * 6 && idle <= IDLE * 7, "{idle:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn of_several_requests_at_a_time_the_last_ends_the_work() {
        let activity = Activity::since(Instant::now());
        assert!(!activity.has_asked());
        let (first, second) = (activity.begin(), activity.begin());
        drop(first);
        assert_eq!(activity.idle(Instant::now()), None);
        drop(second);
        assert_eq!(activity.idle(Instant::now() + IDLE), Some(IDLE));
        assert!(activity.has_asked());
    }
}
