//! Who is in: as many connections as there is room for, and which of them goes when there is none.
//!
//! A connection costs its caller nothing once it stands, and so whoever holds many of them must not keep the next caller
//! out: the one that has lain idle for longest makes room. One with a request under way never does.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::pace::Between;

/// Connections that have asked for nothing for so long since their handshake go before all others, such as those that an
/// API server keeps open between its reviews. Whoever connects to ask has asked by then.
const CONNECTED_TO_ASK: Duration = Duration::from_secs(2);
/// How long one that is to go may take, before another is chosen: its farewell, and a moment.
const ROOM: Duration = Duration::from_millis(300);
/// The least time between two log lines about a lack of room, of which there might be thousands a second.
const TELL_AGAIN: Duration = Duration::from_secs(60);

/// The connections of a port.
#[derive(Debug)]
pub(super) struct Places {
    free: Arc<Semaphore>,
    taken: Arc<Mutex<HashMap<u64, Taken>>>,
    next: AtomicU64,
    began: Instant,
    told: Mutex<Option<Instant>>,
}

#[derive(Debug)]
struct Taken {
    between: Between,
    leave: CancellationToken,
}

/// The room of one connection, given back with the value.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) between: Between,
    leave: CancellationToken,
    number: u64,
    taken: Arc<Mutex<HashMap<u64, Taken>>>,
    _room: OwnedSemaphorePermit,
}

impl Places {
    /// Room for `most` connections.
    pub(super) fn new(most: usize) -> Self {
        Self {
            free: Arc::new(Semaphore::new(most)),
            taken: Arc::default(),
            next: AtomicU64::default(),
            began: Instant::now(),
            told: Mutex::default(),
        }
    }

    /// A place for one more, as soon as there is one; where there is none, the longest idle is asked to go.
    pub(super) async fn enter(&self) -> Place {
        loop {
            if self.free.available_permits() == 0 {
                self.make_room();
            }
            if let Ok(Ok(room)) = timeout(ROOM, Arc::clone(&self.free).acquire_owned()).await {
                return self.place(room);
            }
        }
    }

    /// Asks the connection to go that has lain idle for longest, if one has.
    ///
    /// Looks at all of them, which takes a fraction of the handshake that the new one costs.
    pub(super) fn make_room(&self) {
        let now = Instant::now();
        let longest = {
            let taken = lock(&self.taken);
            let staying = taken.values().filter(|one| !one.leave.is_cancelled());
            let idle = staying.filter_map(|one| Some((goes_after(&one.between, now)?, one.leave.clone())));
            idle.max_by_key(|(key, _)| *key).map(|(_, leave)| leave)
        };
        let mut told = lock(&self.told);
        if told.is_none_or(|told| now.duration_since(told) >= TELL_AGAIN) {
            *told = Some(now);
            tracing::warn!(
                "there is no room for another connection; the longest idle are closed for new ones"
            );
        }
        if let Some(leave) = longest {
            leave.cancel();
        }
    }

    fn place(&self, room: OwnedSemaphorePermit) -> Place {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (between, leave) = (Between::since(self.began), CancellationToken::new());
        lock(&self.taken).insert(number, Taken { between: between.clone(), leave: leave.clone() });
        Place { between, leave, number, taken: Arc::clone(&self.taken), _room: room }
    }
}

impl Place {
    /// Returns when the connection is to make room, or when it has not asked for anything within `limit` from now.
    pub(super) async fn is_wanted(&self, limit: Duration) {
        let silent = async {
            sleep(limit).await;
            if self.between.has_asked() {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = self.leave.cancelled() => {}
            () = silent => {}
        }
    }

    /// Returns when the connection is to make room.
    pub(super) async fn is_wanted_by_another(&self) {
        self.leave.cancelled().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        lock(&self.taken).remove(&self.number);
    }
}

/// The greatest goes first; none while a request is under way.
fn goes_after(between: &Between, now: Instant) -> Option<(bool, Duration)> {
    let idle = between.idle(now)?;
    Some((!between.has_asked() && idle >= CONNECTED_TO_ASK, idle))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn leaving(places: &[&Place]) -> Vec<bool> {
        places.iter().map(|place| place.leave.is_cancelled()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn the_longest_idle_goes_and_never_one_at_work() {
        let places = Places::new(3);
        let working = places.enter().await;
        working.between.request_begins();
        advance(SECOND).await;
        let kept = places.enter().await;
        kept.between.request_begins();
        kept.between.request_ends();
        advance(SECOND).await;
        let fresh = places.enter().await;
        places.make_room();
        assert_eq!(leaving(&[&working, &kept, &fresh]), [false, true, false]);
        // Asked already: the next one is chosen.
        places.make_room();
        assert_eq!(leaving(&[&working, &kept, &fresh]), [false, true, true]);
        places.make_room();
        assert!(!working.leave.is_cancelled());
    }

    #[tokio::test(start_paused = true)]
    async fn who_connected_to_say_nothing_goes_before_who_has_asked() {
        let places = Places::new(2);
        let kept = places.enter().await;
        kept.between.request_begins();
        kept.between.request_ends();
        advance(30 * SECOND).await;
        let silent = places.enter().await;
        advance(3 * SECOND).await;
        places.make_room();
        assert_eq!(leaving(&[&kept, &silent]), [false, true]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_place_is_free_when_its_connection_has_gone() {
        let places = Places::new(1);
        let mut first = places.enter().await;
        // A head that begins to come is no idleness, and yet no request.
        advance(SECOND).await;
        first.between.stirs();
        assert_eq!(first.between.idle(Instant::now()), Some(Duration::ZERO));
        for _ in 0..3 {
            let (next, ()) = tokio::join!(places.enter(), async {
                first.leave.cancelled().await;
                drop(first);
            });
            first = next;
        }
        assert_eq!(lock(&places.taken).len(), 1);
    }
}
