//! Implements a bounded map that keeps the most recently used entries.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

/// Two halves: when the newer one is full, the older one goes.
#[derive(Debug)]
pub(crate) struct Recent<K, V> {
    newer: HashMap<K, (V, usize)>,
    older: HashMap<K, (V, usize)>,
    /// The weight of the newer half.
    weight: usize,
    most: usize,
}

impl<K: Eq + Hash, V: Clone> Recent<K, V> {
    /// Creates a map each of whose two halves holds values with a weight of up to `most`.
    pub(crate) fn of(most: usize) -> Self {
        Self { newer: HashMap::new(), older: HashMap::new(), weight: 0, most }
    }

    pub(crate) fn get<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        if let Some((value, _)) = self.newer.get(key) {
            return Some(value.clone());
        }
        let (key, (value, weight)) = self.older.remove_entry(key)?;
        self.put(key, value.clone(), weight);
        Some(value)
    }

    pub(crate) fn put(&mut self, key: K, value: V, weight: usize) {
        if self.weight.saturating_add(weight) > self.most {
            self.older = std::mem::take(&mut self.newer);
            self.weight = 0;
        }
        self.weight = self.weight.saturating_add(weight);
        self.newer.insert(key, (value, weight));
    }
}

#[cfg(test)]
mod tests {
    use super::Recent;

    #[test]
    fn what_is_asked_for_stays_and_the_rest_goes() {
        let mut recent: Recent<u32, u32> = Recent::of(10);
        for number in 0..1_000 {
            recent.put(number, number, 1);
            assert_eq!(recent.get(&0), Some(0), "asked for since");
            assert!(recent.newer.len() + recent.older.len() <= 20);
        }
        assert_eq!(recent.get(&500), None);
        assert_eq!(recent.get(&999), Some(999));
    }

    #[test]
    fn what_is_more_than_all_may_weigh_is_kept_alone() {
        let mut recent: Recent<&str, u32> = Recent::of(10);
        recent.put("small", 1, 1);
        recent.put("large", 2, 100);
        assert_eq!((recent.get("large"), recent.get("small")), (Some(2), Some(1)));
        recent.put("other", 3, 1);
        assert_eq!((recent.older.len(), recent.newer.len()), (1, 2), "the large one is the older half");
    }
}
