//! Limits watches: their number, and the bytes of theirs that wait for clients; ends the slowest when that is too
//! much.
//!
//! A watch renders a chunk once there is memory for it, and holds that memory until the chunk is sent. If there is
//! none for a while, the watch whose client has left a chunk unread for the longest is ended with the error that it
//! is too slow (410); a connection whose client does not even read that is closed. Such a client starts again from a
//! list, as with kube-apiserver.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use super::budget::{Budget, Reservation};
use super::hangup::{Expectation, Hangup};
use crate::identity::{Identity, MASTERS};
use crate::status::Refusal;

/// Watches of one user, who is no administrator. A client has one for each kind that it follows, so that this is ten controllers of
/// a hundred kinds.
pub(crate) const MAX_OF_USER: usize = 1000;
/// Watches in all: each costs a task and some kilobytes while nothing happens. A suite of tests has all of its controllers under one
/// administrator's name, thousands of watches.
pub(crate) const MAX_WATCHES: usize = 8000;
/// Bytes of a user's watches that were rendered and are not sent: what 256 clients leave lying that do not read.
const MAX_UNSENT_OF_USER: usize = 16 << 20;
/// Of all users, four of whom have to come together to take it all.
const MAX_UNSENT: usize = 64 << 20;
/// A watch waits so long for room before it asks for the slowest to end; a chunk that was taken sooner is not slow.
const PATIENCE: Duration = Duration::from_secs(1);
/// A client has so long to take the last words of a watch that was ended.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// All watches together send a chunk so often: each costs its task, its frame and its record of TLS more than the events in it.
const CHUNK_EVERY: Duration = Duration::from_micros(10);
/// Shorter than what timers tell apart, a pause would only cost.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);

#[derive(Clone, Debug)]
pub(crate) struct Watchers(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    budget: Budget,
    entries: Mutex<HashMap<u64, Arc<Entry>>>,
    /// How many entries there are, for those that do not wait for the lock.
    open: AtomicU32,
    next: AtomicU64,
    ended: AtomicU64,
}

#[derive(Debug)]
struct Entry {
    user: String,
    hangup: Option<Hangup>,
    lying: Mutex<Lying>,
    is_slow: AtomicBool,
    told: Notify,
}

/// Chunks of one watch that are not sent.
#[derive(Debug, Default)]
struct Lying {
    chunks: usize,
    /// When the client took something last.
    since: Option<Instant>,
    /// The connection is cut unless the watch and its chunks are gone before.
    last_words: Option<Expectation>,
}

/// One watch, until this goes.
#[derive(Debug)]
pub(crate) struct Ticket {
    watchers: Watchers,
    id: u64,
    entry: Arc<Entry>,
}

/// The watch was the slowest, and is to end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TooSlow;

impl Default for Watchers {
    fn default() -> Self {
        Self(Arc::new(Inner {
            budget: Budget::new(MAX_UNSENT_OF_USER, MAX_UNSENT),
            entries: Mutex::default(),
            open: AtomicU32::default(),
            next: AtomicU64::default(),
            ended: AtomicU64::default(),
        }))
    }
}

impl Watchers {
    /// A place for a watch of `user`, which comes over the connection of `hangup`.
    ///
    /// # Errors
    /// 429 when there are as many as may be, and none of them is slow.
    pub(crate) fn open(&self, user: &Identity, hangup: Option<Hangup>) -> Result<Ticket, Refusal> {
        // As with changes, and as upstream exempts them.
        let bounded = !user.groups.iter().any(|group| group == MASTERS);
        let user = user.username.as_str();
        let (own, all) = self.counts(user);
        let full = (bounded && own >= MAX_OF_USER && !self.end_slowest(Some(user)))
            || (all >= MAX_WATCHES && !self.end_slowest(None));
        if full {
            tracing::warn!(user, "as many watches are open as are allowed: one was sent away");
            let why = format!(
                "too many watches are open: {MAX_OF_USER} of a user and {MAX_WATCHES} in all are allowed; \
                 end some, or try again later"
            );
            return Err(Refusal::too_many_requests(&why, 1));
        }
        let entry = Arc::new(Entry {
            user: user.to_owned(),
            hangup,
            lying: Mutex::default(),
            is_slow: AtomicBool::new(false),
            told: Notify::new(),
        });
        let id = self.0.next.fetch_add(1, Ordering::Relaxed);
        self.entries().insert(id, Arc::clone(&entry));
        self.0.open.fetch_add(1, Ordering::Relaxed);
        Ok(Ticket { watchers: self.clone(), id, entry })
    }

    /// Watches that are open, bytes of them that are not sent, and watches that were ended because they were slow.
    pub(crate) fn figures(&self) -> (usize, usize, u64) {
        (self.entries().len(), self.0.budget.held(), self.0.ended.load(Ordering::Relaxed))
    }

    /// The watches of `user` and of all, without those that are about to end.
    fn counts(&self, user: &str) -> (usize, usize) {
        let entries = self.entries();
        let open = || entries.values().filter(|entry| !entry.is_slow.load(Ordering::Relaxed));
        (open().filter(|entry| entry.user == user).count(), open().count())
    }

    /// Ends the watch, of the user or of anybody, whose chunk lies for the longest; false where none lies for long.
    fn end_slowest(&self, user: Option<&str>) -> bool {
        let entries = self.entries();
        let now = Instant::now();
        let slow = entries.iter().filter(|(_, entry)| user.is_none_or(|user| entry.user == user));
        let slow = slow.filter(|(_, entry)| !entry.is_slow.load(Ordering::Relaxed));
        let slow = slow.filter_map(|(id, entry)| Some((entry.lying().since?, id, entry)));
        let slow = slow.filter(|(since, ..)| now.saturating_duration_since(*since) >= PATIENCE);
        // Of several the one that was opened first.
        let Some((.., slowest)) = slow.min_by_key(|(since, id, _)| (*since, **id)) else { return false };
        tracing::info!(user = slowest.user, "a watch was ended: its client does not read");
        self.0.ended.fetch_add(1, Ordering::Relaxed);
        slowest.end(now + LAST_WORDS);
        true
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<u64, Arc<Entry>>> {
        self.0.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    fn end(&self, until: Instant) {
        self.is_slow.store(true, Ordering::Relaxed);
        self.lying().last_words = self.hangup.as_ref().map(|hangup| hangup.expect(until));
        self.told.notify_one();
    }

    fn lying(&self) -> MutexGuard<'_, Lying> {
        self.lying.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ticket {
    /// Ready when the watch is to end.
    pub(crate) async fn too_slow(&self) -> TooSlow {
        while !self.entry.is_slow.load(Ordering::Relaxed) {
            self.entry.told.notified().await;
        }
        TooSlow
    }

    /// Ready when the port drains whose connection the watch comes over.
    pub(crate) async fn leaves(&self) {
        match &self.entry.hangup {
            Some(hangup) => hangup.leaves().await,
            None => std::future::pending().await,
        }
    }

    /// For how long a watch that has sent a chunk gathers what happens before it sends another: what thousands of watches wait for
    /// comes to them in few chunks, and a few watches are told at once.
    pub(crate) fn pause(&self) -> Duration {
        let pause = CHUNK_EVERY * self.watchers.0.open.load(Ordering::Relaxed);
        if pause < SHORTEST_PAUSE { Duration::ZERO } else { pause }
    }

    /// Room for so many bytes, which may take a while.
    pub(crate) async fn room(&self, bytes: usize) -> Result<Reservation, TooSlow> {
        let (user, watchers) = (&self.entry.user, &self.watchers);
        let reserve = watchers.0.budget.reserve(user, bytes);
        tokio::pin!(reserve);
        loop {
            tokio::select! {
                biased;
                slow = self.too_slow() => return Err(slow),
                room = &mut reserve => return Ok(room),
                () = sleep(PATIENCE) => {
                    let own = watchers.0.budget.is_used_up(user, bytes);
                    watchers.end_slowest(own.then_some(user.as_str()));
                }
            }
        }
    }

    /// The text as a chunk, which takes `room` until it is sent.
    pub(crate) fn chunk(&self, text: Vec<u8>, room: Reservation) -> Bytes {
        let mut lying = self.entry.lying();
        lying.chunks += 1;
        lying.since.get_or_insert_with(Instant::now);
        drop(lying);
        Bytes::from_owner(Chunk { text, _room: room, of: Arc::clone(&self.entry) })
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.watchers.entries().remove(&self.id);
        self.watchers.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A chunk that was handed to the transport, until that has sent it.
struct Chunk {
    text: Vec<u8>,
    _room: Reservation,
    of: Arc<Entry>,
}

impl AsRef<[u8]> for Chunk {
    fn as_ref(&self) -> &[u8] {
        &self.text
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        let mut lying = self.of.lying();
        lying.chunks = lying.chunks.saturating_sub(1);
        // What was sent is progress: the others are waited for from now on.
        lying.since = (lying.chunks > 0).then(Instant::now);
    }
}
