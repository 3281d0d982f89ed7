//! Implements the work queue: keys of objects, each at most once, none while it is being reconciled, the longest due first.
//! Pure.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use tokio::time::Instant;

use crate::controllers::kit::key::Key;

#[derive(Debug, Default)]
pub(super) struct Queue {
    /// Keys that are not due yet, by the time when they are.
    later: BTreeSet<(Instant, Key)>,
    when: BTreeMap<Key, Instant>,
    /// Keys that are due, with the time since when.
    due: VecDeque<(Key, Instant)>,
    /// The keys in `due` or `again`.
    soon: BTreeSet<Key>,
    running: BTreeSet<Key>,
    /// Keys that are due and being reconciled: they are due again after that.
    again: BTreeMap<Key, Instant>,
}

impl Queue {
    /// Schedules `key` for `at`, unless it is scheduled earlier.
    pub(super) fn add(&mut self, key: Key, at: Instant) {
        if self.soon.contains(&key) || self.when.get(&key).is_some_and(|earlier| *earlier <= at) {
            return;
        }
        self.forget_later(&key);
        self.when.insert(key.clone(), at);
        self.later.insert((at, key));
    }

    /// Makes the keys due whose time has come at `now`.
    pub(super) fn ripen(&mut self, now: Instant) {
        while let Some((at, key)) = self.later.pop_first() {
            if at > now {
                self.later.insert((at, key));
                return;
            }
            self.when.remove(&key);
            self.soon.insert(key.clone());
            if self.running.contains(&key) {
                self.again.insert(key, now);
            } else {
                self.due.push_back((key, now));
            }
        }
    }

    /// Returns when the next key becomes due.
    pub(super) fn next(&self) -> Option<Instant> {
        self.later.first().map(|(at, _)| *at)
    }

    /// Returns the number of due keys.
    pub(super) fn depth(&self) -> usize {
        self.due.len()
    }

    /// Takes the next due key, and since when it is due. It counts as being reconciled until [`Self::ended`].
    pub(super) fn take(&mut self) -> Option<(Key, Instant)> {
        let (key, since) = self.due.pop_front()?;
        self.soon.remove(&key);
        self.running.insert(key.clone());
        Some((key, since))
    }

    pub(super) fn ended(&mut self, key: &Key) {
        self.running.remove(key);
        if let Some(since) = self.again.remove(key) {
            self.due.push_back((key.clone(), since));
        }
    }

    pub(super) fn is_running(&self, key: &Key) -> bool {
        self.running.contains(key)
    }

    /// Removes `key`.
    pub(super) fn forget(&mut self, key: &Key) {
        self.forget_later(key);
        if self.soon.remove(key) && self.again.remove(key).is_none() {
            self.due.retain(|(due, _)| due != key);
        }
    }

    fn forget_later(&mut self, key: &Key) {
        if let Some(at) = self.when.remove(key) {
            self.later.remove(&(at, key.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn key(name: &str) -> Key {
        Key { name: name.to_owned(), ..Key::default() }
    }

    fn taken(queue: &mut Queue) -> Option<Key> {
        queue.take().map(|(key, _)| key)
    }

    #[test]
    fn the_earlier_wish_counts_and_each_key_is_there_once() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        let in_seconds = |seconds| now + Duration::from_secs(seconds);
        queue.add(key("a"), in_seconds(5));
        queue.add(key("a"), in_seconds(9));
        queue.add(key("b"), in_seconds(3));
        queue.add(key("a"), in_seconds(1));
        assert_eq!(queue.next(), Some(in_seconds(1)));
        queue.ripen(in_seconds(10));
        assert_eq!((queue.depth(), queue.next()), (2, None));
        queue.add(key("b"), in_seconds(11));
        assert_eq!(
            [taken(&mut queue), taken(&mut queue), taken(&mut queue)],
            [Some(key("a")), Some(key("b")), None]
        );
    }

    #[test]
    fn what_is_being_looked_at_waits_for_its_end() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        queue.add(key("a"), now);
        queue.ripen(now);
        assert_eq!(taken(&mut queue), Some(key("a")));
        queue.add(key("a"), now);
        queue.ripen(now);
        assert_eq!((taken(&mut queue), queue.is_running(&key("a"))), (None, true));
        queue.ended(&key("a"));
        assert_eq!(taken(&mut queue), Some(key("a")));
        queue.ended(&key("a"));
        assert_eq!(taken(&mut queue), None);
    }

    #[test]
    fn what_is_forgotten_does_not_come() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        for name in ["later", "due", "kept"] {
            queue.add(key(name), now + Duration::from_secs(u64::from(name == "later")));
        }
        queue.ripen(now);
        queue.forget(&key("later"));
        queue.forget(&key("due"));
        assert_eq!((queue.next(), taken(&mut queue), taken(&mut queue)), (None, Some(key("kept")), None));
    }
}
