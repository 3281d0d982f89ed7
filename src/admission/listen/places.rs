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
/// A place in so many is kept free where there are many: who makes room takes a while to go, and nobody who comes meanwhile
/// waits for that.
const ONE_KEPT_FREE_OF: usize = 64;
/// How many are chosen to go at a time: to look at all connections costs as much as a handshake, and whoever holds all places
/// and comes again as soon as one is closed makes thousands of others go in a second.
const CHOSEN: usize = 64;
/// How long a choice holds, before one that has been silent for longer may have come to be.
const CHOICE: Duration = Duration::from_millis(100);
/// The least time between two log lines about a lack of room, of which there might be thousands a second.
const TELL_AGAIN: Duration = Duration::from_secs(60);

/// The connections of a port.
#[derive(Debug)]
pub(super) struct Places {
    free: Arc<Semaphore>,
    /// When fewer are free, somebody goes for each who comes.
    kept_free: usize,
    taken: Arc<Mutex<HashMap<u64, Taken>>>,
    next: AtomicU64,
    began: Instant,
    leaving: Mutex<Leaving>,
    told: Mutex<Option<Instant>>,
}

#[derive(Debug)]
struct Taken {
    between: Between,
    leave: CancellationToken,
    /// It was asked to go. The token knows, too, and has a lock.
    leaves: bool,
}

/// Who goes next, chosen for a while. They are taken from the end.
#[derive(Debug, Default)]
struct Leaving {
    chosen: Option<Instant>,
    next: Vec<(Idle, u64)>,
}

/// The greatest goes first: those that connected and said nothing, then those that have lain idle for longest.
type Idle = (bool, Duration);

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
            kept_free: most / ONE_KEPT_FREE_OF,
            taken: Arc::default(),
            next: AtomicU64::default(),
            began: Instant::now(),
            leaving: Mutex::default(),
            told: Mutex::default(),
        }
    }

    /// A place for one more, as soon as there is one; where there is none, the longest idle is asked to go.
    pub(super) async fn enter(&self) -> Place {
        loop {
            if self.free.available_permits() <= self.kept_free {
                self.make_room();
            }
            if let Ok(Ok(room)) = timeout(ROOM, Arc::clone(&self.free).acquire_owned()).await {
                return self.place(room);
            }
        }
    }

    /// Asks the connection to go that has lain idle for longest, if one has.
    pub(super) fn make_room(&self) {
        let now = Instant::now();
        self.tell(now);
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

    fn tell(&self, now: Instant) {
        let mut told = lock(&self.told);
        if told.is_none_or(|told| now.duration_since(told) >= TELL_AGAIN) {
            *told = Some(now);
            tracing::warn!(
                "there is no room for another connection; the longest idle are closed for new ones"
            );
        }
    }

    fn place(&self, room: OwnedSemaphorePermit) -> Place {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (between, leave) = (Between::since(self.began), CancellationToken::new());
        lock(&self.taken)
            .insert(number, Taken { between: between.clone(), leave: leave.clone(), leaves: false });
        Place { between, leave, number, taken: Arc::clone(&self.taken), _room: room }
    }
}

impl Leaving {
    /// Looks at all, and chooses those that are to go next.
    fn choose(&mut self, taken: &HashMap<u64, Taken>, now: Instant) {
        self.chosen = Some(now);
        let staying = taken.iter().filter(|(_, one)| !one.leaves);
        self.next.clear();
        self.next.extend(staying.filter_map(|(number, one)| Some((idleness(&one.between, now)?, *number))));
        let others = self.next.len().saturating_sub(CHOSEN);
        if others > 0 {
            self.next.select_nth_unstable(others);
            self.next.drain(..others);
        }
        self.next.sort_unstable();
        self.next.shrink_to(CHOSEN);
    }

    /// Asks the next of those chosen to go that has not stirred since; whether there was one.
    fn let_one_go(&mut self, taken: &mut HashMap<u64, Taken>, now: Instant) -> bool {
        while let Some((idle, number)) = self.next.pop() {
            let Some(one) = taken.get_mut(&number) else { continue };
            if idleness(&one.between, now).is_some_and(|since| since >= idle) {
                one.leaves = true;
                one.leave.cancel();
                return true;
            }
        }
        false
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

/// None while a request is under way.
fn idleness(between: &Between, now: Instant) -> Option<Idle> {
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
    async fn many_go_in_the_order_of_their_idleness_but_who_stirs_meanwhile() {
        let places = Places::new(3 * CHOSEN);
        let mut all = Vec::new();
        for _ in 0..3 * CHOSEN - places.kept_free {
            all.push(places.enter().await);
            advance(Duration::from_millis(1)).await;
        }
        assert!(!leaving(&all.iter().collect::<Vec<_>>()).contains(&true), "there was room");
        places.make_room();
        all[1].between.stirs();
        all[2].between.request_begins();
        for _ in 1..2 * CHOSEN {
            places.make_room();
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
