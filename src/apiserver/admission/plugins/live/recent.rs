//! Keeps a bounded number of entries by name, and drops the least recently used one first.

use std::collections::{BTreeMap, HashMap};

/// Maps names to entries. Callers pass digests as names where senders choose the text, so that names stay short.
#[derive(Debug)]
pub(super) struct Recent<V> {
    most: usize,
    entries: HashMap<String, (V, u64)>,
    /// Names by the time of their last use.
    seen: BTreeMap<u64, String>,
    turn: u64,
}

impl<V> Recent<V> {
    pub(super) fn of(most: usize) -> Self {
        Self { most, entries: HashMap::new(), seen: BTreeMap::new(), turn: 0 }
    }

    /// Returns the entry of this name, and marks it as just used.
    pub(super) fn get(&mut self, name: &str) -> Option<&mut V> {
        let (value, turn) = self.entries.get_mut(name)?;
        self.turn = self.turn.saturating_add(1);
        self.seen.remove(turn);
        self.seen.insert(self.turn, name.to_owned());
        *turn = self.turn;
        Some(value)
    }

    pub(super) fn insert(&mut self, name: &str, value: V) {
        if let Some(known) = self.get(name) {
            *known = value;
            return;
        }
        if self.entries.len() >= self.most
            && let Some((_, oldest)) = self.seen.pop_first()
        {
            self.entries.remove(&oldest);
        }
        self.turn = self.turn.saturating_add(1);
        self.seen.insert(self.turn, name.to_owned());
        self.entries.insert(name.to_owned(), (value, self.turn));
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        assert_eq!(self.entries.len(), self.seen.len());
        self.entries.len()
    }
}
