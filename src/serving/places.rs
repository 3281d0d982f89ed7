//! Limits the number of connections, and closes the longest idle one when a new client finds none free.
//!
//! An open connection costs its client nothing, so a client that holds many of them must not keep others out. A
//! connection with a request in flight is never closed to make room.

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::activity::Activity;

/// File descriptors that are reserved for everything else: files, stores, the cluster, other listeners.
const OTHER_DESCRIPTORS: usize = 128;
/// Connections that have sent no request for this time since their handshake are closed first, such as those that an
/// API server keeps open between its reviews. Clients that connect to send a request have done so by then.
const CONNECTED_TO_ASK: Duration = Duration::from_secs(2);
/// How long a connection may take to close before another is chosen: a graceful close, and a moment.
const ROOM: Duration = Duration::from_millis(300);
/// One place out of this many is kept free: closing a connection takes a while, and new clients do not wait for
/// that.
const ONE_KEPT_FREE_OF: usize = 64;
/// How many connections are chosen to close at a time: scanning all of them costs as much as a handshake, and a client that holds
/// all places and reconnects immediately would cause thousands of scans per second.
const CHOSEN: usize = 64;
/// How long a choice is valid, before another connection may be idle for longer.
const CHOICE: Duration = Duration::from_millis(100);
/// The least time between two log lines about a lack of places, of which there might be thousands a second.
const TELL_AGAIN: Duration = Duration::from_secs(60);

/// The limit on connections of a port, and the connections that count against it.
#[derive(Debug)]
pub struct Places {
    most: usize,
    free: Arc<Semaphore>,
    /// If fewer places are free, a connection is closed for each new one.
    kept_free: usize,
    taken: Arc<Mutex<HashMap<u64, Taken>>>,
    next: AtomicU64,
    began: Instant,
    leaving: Mutex<Leaving>,
    told: Mutex<Option<Instant>>,
}

#[derive(Debug)]
struct Taken {
    activity: Activity,
    leave: CancellationToken,
    /// Whether it was asked to close. The token has the same information, but behind a lock.
    leaves: bool,
}

/// The connections to close next, valid for a while. They are taken from the end.
#[derive(Debug, Default)]
struct Leaving {
    chosen: Option<Instant>,
    next: Vec<(Idle, u64)>,
}

/// The greatest is closed first: connections without any request, then those that were idle for longest.
type Idle = (bool, Duration);

/// One connection's share of the limit, released when this is dropped.
#[derive(Debug)]
pub struct Place {
    pub(crate) activity: Activity,
    leave: CancellationToken,
    number: u64,
    taken: Arc<Mutex<HashMap<u64, Taken>>>,
    _room: OwnedSemaphorePermit,
}

impl Places {
    /// Creates a limit of `most` connections.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self {
            most,
            free: Arc::new(Semaphore::new(most)),
            kept_free: most / ONE_KEPT_FREE_OF,
            taken: Arc::default(),
            next: AtomicU64::default(),
            began: Instant::now(),
            leaving: Mutex::default(),
            told: Mutex::default(),
        }
    }

    /// Creates a limit of `most` connections, or fewer if the process may not open so many file descriptors.
    #[must_use]
    pub fn within_descriptors(most: usize) -> Self {
        let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
        let files = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
        let soft = files.and_then(|line| line.split_whitespace().next()?.parse::<usize>().ok());
        Self::new(soft.map_or(most, |soft| most.min(soft.saturating_sub(OTHER_DESCRIPTORS).max(1))))
    }

    /// Returns the limit.
    #[must_use]
    pub fn most(&self) -> usize {
        self.most
    }

    /// Returns the number of open connections.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.most.saturating_sub(self.free.available_permits())
    }

    /// Waits for a free place; when there is none, the longest idle connection is asked to close.
    pub async fn enter(&self) -> Place {
        loop {
            if self.free.available_permits() <= self.kept_free {
                self.make_room(&"as many are open as are allowed");
            }
            if let Ok(Ok(room)) = timeout(ROOM, Arc::clone(&self.free).acquire_owned()).await {
                return self.place(room);
            }
        }
    }

    /// Asks the longest idle connection to close, if there is one; `why` is logged, but not each time.
    pub(crate) fn make_room(&self, why: &dyn fmt::Display) {
        let now = Instant::now();
        self.tell(why, now);
        let mut leaving = lock(&self.leaving);
        let mut taken = lock(&self.taken);
        if leaving.chosen.is_none_or(|chosen| now.duration_since(chosen) >= CHOICE) {
            leaving.choose(&taken, now);
        }
        if !leaving.let_one_go(&mut taken, now) {
            leaving.choose(&taken, now);
            leaving.let_one_go(&mut taken, now);
        }
    }

    fn tell(&self, why: &dyn fmt::Display, now: Instant) {
        let mut told = lock(&self.told);
        if told.is_none_or(|told| now.duration_since(told) >= TELL_AGAIN) {
            *told = Some(now);
            tracing::warn!(%why, "there is no room for another connection; the longest idle are closed for new ones");
        }
    }

    fn place(&self, room: OwnedSemaphorePermit) -> Place {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (activity, leave) = (Activity::since(self.began), CancellationToken::new());
        lock(&self.taken)
            .insert(number, Taken { activity: activity.clone(), leave: leave.clone(), leaves: false });
        Place { activity, leave, number, taken: Arc::clone(&self.taken), _room: room }
    }
}

impl Leaving {
    /// Scans all connections, and chooses those to close next.
    fn choose(&mut self, taken: &HashMap<u64, Taken>, now: Instant) {
        self.chosen = Some(now);
        let staying = taken.iter().filter(|(_, one)| !one.leaves);
        self.next.clear();
        self.next.extend(staying.filter_map(|(number, one)| Some((idleness(&one.activity, now)?, *number))));
        let others = self.next.len().saturating_sub(CHOSEN);
        if others > 0 {
            self.next.select_nth_unstable(others);
            self.next.drain(..others);
        }
        self.next.sort_unstable();
        self.next.shrink_to(CHOSEN);
    }

    /// Asks the next chosen connection that was idle since then to close; returns whether there was one.
    fn let_one_go(&mut self, taken: &mut HashMap<u64, Taken>, now: Instant) -> bool {
        while let Some((idle, number)) = self.next.pop() {
            let Some(one) = taken.get_mut(&number) else { continue };
            if idleness(&one.activity, now).is_some_and(|since| since >= idle) {
                one.leaves = true;
                one.leave.cancel();
                return true;
            }
        }
        false
    }
}

impl Place {
    /// Completes when the connection has to make room.
    pub(crate) async fn is_wanted(&self) {
        self.leave.cancelled().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        lock(&self.taken).remove(&self.number);
    }
}

/// Returns None while a request is in flight.
fn idleness(activity: &Activity, now: Instant) -> Option<Idle> {
    let idle = activity.idle(now)?;
    Some((!activity.has_asked() && idle >= CONNECTED_TO_ASK, idle))
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
        let _at_work = working.activity.begin();
        advance(SECOND).await;
        let kept = places.enter().await;
        drop(kept.activity.begin());
        advance(SECOND).await;
        let fresh = places.enter().await;
        places.make_room(&"test");
        assert_eq!(leaving(&[&working, &kept, &fresh]), [false, true, false]);
        // The first was asked already, so the next one is chosen.
        places.make_room(&"test");
        assert_eq!(leaving(&[&working, &kept, &fresh]), [false, true, true]);
        places.make_room(&"test");
        assert!(!working.leave.is_cancelled());
    }

    #[tokio::test(start_paused = true)]
    async fn who_connected_to_say_nothing_goes_before_who_has_asked() {
        let places = Places::new(2);
        let kept = places.enter().await;
        drop(kept.activity.begin());
        advance(30 * SECOND).await;
        let silent = places.enter().await;
        advance(3 * SECOND).await;
        places.make_room(&"test");
        assert_eq!(leaving(&[&kept, &silent]), [false, true]);
    }

    #[tokio::test(start_paused = true)]
    async fn many_go_in_the_order_of_their_idleness_but_who_stirs_meanwhile() {
        let places = Places::new(3 * CHOSEN);
        let mut all = Vec::new();
        for _ in 0..3 * CHOSEN - places.kept_free {
            all.push(places.enter().await);
            advance(Duration::from_millis(1)).await;
        }
        assert!(!leaving(&all.iter().collect::<Vec<_>>()).contains(&true), "there was room");
        places.make_room(&"test");
        all[1].activity.stirs();
        let _at_work = all[2].activity.begin();
        for _ in 1..2 * CHOSEN {
            places.make_room(&"test");
        }
        let left: Vec<_> = (0..all.len()).filter(|at| all[*at].leave.is_cancelled()).collect();
        let expected: Vec<_> = (0..2 * CHOSEN + 2).filter(|at| ![1, 2].contains(at)).collect();
        assert_eq!(left, expected);
    }

    #[tokio::test(start_paused = true)]
    async fn a_place_is_kept_free_where_there_are_many() {
        let places = Places::new(2 * ONE_KEPT_FREE_OF);
        let mut all = Vec::new();
        for _ in 0..2 * ONE_KEPT_FREE_OF - 2 {
            all.push(places.enter().await);
        }
        assert!(all.iter().all(|one| !one.leave.is_cancelled()));
        let began = Instant::now();
        let _two = (places.enter().await, places.enter().await);
        assert_eq!(began.elapsed(), Duration::ZERO, "though nobody has gone yet");
        assert_eq!(all.iter().filter(|one| one.leave.is_cancelled()).count(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_place_is_free_when_its_connection_has_gone() {
        let places = Places::new(1);
        let mut first = places.enter().await;
        // The beginning of a request head ends idleness, but is not a request yet.
        advance(SECOND).await;
        first.activity.stirs();
        assert_eq!(first.activity.idle(Instant::now()), Some(Duration::ZERO));
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
