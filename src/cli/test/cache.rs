//! What several threads need and one of them makes.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Values by key, each made once; whoever asks meanwhile waits for that value alone.
#[derive(Debug)]
pub(super) struct Cache<K, V>(Mutex<HashMap<K, Arc<OnceLock<V>>>>);

impl<K: Eq + Hash, V: Clone> Cache<K, V> {
    pub(super) fn get(&self, key: K, make: impl FnOnce() -> V) -> V {
        let cell = Arc::clone(self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default());
        cell.get_or_init(make).clone()
    }
}

impl<K, V> Default for Cache<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}
