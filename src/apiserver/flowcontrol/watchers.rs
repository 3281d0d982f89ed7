//! Limits watches: their number, and their bytes that wait for clients; ends the slowest when a limit is
//! reached.
//!
//! A watch renders a chunk once there is memory for it, and holds that memory until the chunk is sent. If there is
//! none for a while, the watch whose client has left a chunk unread for the longest is ended with an error
//! (410); a connection whose client does not read even that is closed. The client starts again with a
//! list, as with kube-apiserver.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use super::budget::{Budget, Reservation};
use super::hangup::{Expectation, Hangup};
use crate::identity::{Identity, MASTERS};
use crate::status::Refusal;

/// The number of watches of one user who is not an administrator. A client has one for each kind that it follows, so
/// this serves ten controllers of a hundred kinds.
pub(crate) const MAX_OF_USER: usize = 1000;
/// The number of all watches: each costs a task and some kilobytes while idle. A test suite may run all of its controllers
/// as one administrator, with thousands of watches.
pub(crate) const MAX_WATCHES: usize = 8000;
/// The rendered, unsent bytes of a user's watches: those of 256 clients that do not read.
const MAX_UNSENT_OF_USER: usize = 16 << 20;
/// The unsent bytes of all users together; no user can hold more than a quarter of them.
const MAX_UNSENT: usize = 64 << 20;
/// How long a watch waits for memory before the slowest is ended; a chunk that was sent sooner is not slow.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long a client may take to read the last event of a watch that was ended.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// The average interval of chunks of all watches together while few watches have something to send.
const CHUNK_EVERY: Duration = Duration::from_micros(10);
/// The same while thousands have: a task, a frame and a TLS record cost more than the events in them, on both sides.
const CHUNK_EVERY_AT_MOST: Duration = Duration::from_micros(100);
/// Chunks that are ahead of their time by less are sent at once; by more, the interval grows by [`CHUNK_EVERY`] for each of these.
const FREE: Duration = Duration::from_millis(5);
/// No watch gathers for longer.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
pub(crate) struct Watchers(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    budget: Budget,
    entries: Mutex<HashMap<u64, Arc<Entry>>>,
    /// When the chunks so far would have been sent at their interval: in the future while they come faster.
    paced: Mutex<Option<Instant>>,
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

/// The unsent chunks of one watch.
#[derive(Debug, Default)]
struct Lying {
    chunks: usize,
    /// Since when the oldest unsent chunk waits, or the time of the last progress.
    since: Option<Instant>,
    /// The deadline at which the connection is closed unless the watch and its chunks are gone.
    last_words: Option<Expectation>,
}

/// One open watch, until this is dropped.
#[derive(Debug)]
pub(crate) struct Ticket {
    watchers: Watchers,
    id: u64,
    entry: Arc<Entry>,
}

/// The error that ends the slowest watch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TooSlow;

impl Default for Watchers {
    fn default() -> Self {
        Self(Arc::new(Inner {
            budget: Budget::new(MAX_UNSENT_OF_USER, MAX_UNSENT),
            entries: Mutex::default(),
            paced: Mutex::default(),
            next: AtomicU64::default(),
            ended: AtomicU64::default(),
        }))
    }
}

impl Watchers {
    /// Registers a watch of `user` that comes over the connection of `hangup`.
    ///
    /// # Errors
    /// 429 if a limit is reached and no watch is slow.
    pub(crate) fn open(&self, user: &Identity, hangup: Option<Hangup>) -> Result<Ticket, Refusal> {
        // Administrators are exempt, as with changes and as upstream.
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
        Ok(Ticket { watchers: self.clone(), id, entry })
    }

    /// Returns the number of open watches, their unsent bytes, and the number of watches that were ended for being slow.
    pub(crate) fn figures(&self) -> (usize, usize, u64) {
        (self.entries().len(), self.0.budget.held(), self.0.ended.load(Ordering::Relaxed))
    }

    /// Returns the numbers of watches of `user` and in total, without those that are ending.
    fn counts(&self, user: &str) -> (usize, usize) {
        let entries = self.entries();
        let open = || entries.values().filter(|entry| !entry.is_slow.load(Ordering::Relaxed));
        (open().filter(|entry| entry.user == user).count(), open().count())
    }

    /// Ends the watch, of the user or of anybody, whose chunk has been unread for the longest; false if none is slow.
    fn end_slowest(&self, user: Option<&str>) -> bool {
        let entries = self.entries();
        let now = Instant::now();
        let slow = entries.iter().filter(|(_, entry)| user.is_none_or(|user| entry.user == user));
        let slow = slow.filter(|(_, entry)| !entry.is_slow.load(Ordering::Relaxed));
        let slow = slow.filter_map(|(id, entry)| Some((entry.lying().since?, id, entry)));
        let slow = slow.filter(|(since, ..)| now.saturating_duration_since(*since) >= PATIENCE);
        // Of several the one that was opened first is ended.
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
    /// Completes when the watch is to end.
    pub(crate) async fn too_slow(&self) -> TooSlow {
        while !self.entry.is_slow.load(Ordering::Relaxed) {
            self.entry.told.notified().await;
        }
        TooSlow
    }

    /// Completes when the port of the watch's connection drains.
    pub(crate) async fn leaves(&self) {
        match &self.entry.hangup {
            Some(hangup) => hangup.leaves().await,
            None => std::future::pending().await,
        }
    }

    /// Returns until when this watch, which sends a chunk now, gathers events for its next one: where thousands of watches have
    /// something to send, they send it in few chunks; where a few have, at once, however many are open.
    pub(crate) fn next_chunk(&self) -> Instant {
        let now = Instant::now();
        let mut paced = self.watchers.0.paced.lock().unwrap_or_else(PoisonError::into_inner);
        let ahead = paced.map_or(Duration::ZERO, |paced| paced.saturating_duration_since(now));
        let grown = CHUNK_EVERY.mul_f64(1.0 + ahead.div_duration_f64(FREE));
        let ahead = (ahead + grown.min(CHUNK_EVERY_AT_MOST)).min(LONGEST_PAUSE);
        *paced = Some(now + ahead);
        if ahead < FREE { now } else { now + ahead }
    }

    /// Reserves so many bytes, which may take a while.
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

    /// Wraps the text as a chunk, which holds `room` until it is sent.
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
    }
}

/// A chunk that was handed to the transport, dropped when sent.
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
        // Sending a chunk is progress: the wait of the others begins now.
        lying.since = (lying.chunks > 0).then(Instant::now);
    }
}
