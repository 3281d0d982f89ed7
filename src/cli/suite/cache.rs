//! Caches values that several threads need. Each is computed once; other threads wait only for the value that they need.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

/// Values by key, each computed once and kept.
#[derive(Debug)]
pub(super) struct Kept<K, V>(Mutex<HashMap<K, Arc<OnceLock<V>>>>);

/// Values by key that are dropped when nobody uses them: compiled definitions are large, and suites that share one are
/// usually processed close together. A failure is not kept.
#[derive(Debug)]
pub(super) struct Shared<K, T: ?Sized>(Mutex<HashMap<K, Cell<T>>>);

type Cell<T> = Arc<Mutex<Option<Weak<T>>>>;

impl<K: Eq + Hash, V: Clone> Kept<K, V> {
    pub(super) fn get(&self, key: K, make: impl FnOnce() -> V) -> V {
        let cell = Arc::clone(self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default());
        cell.get_or_init(make).clone()
    }
}

impl<K: Eq + Hash, T: ?Sized> Shared<K, T> {
    pub(super) fn get<E>(&self, key: K, make: impl FnOnce() -> Result<Arc<T>, E>) -> Result<Arc<T>, E> {
        let cell = Arc::clone(self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default());
        let mut held = cell.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = held.as_ref().and_then(Weak::upgrade) {
            return Ok(value);
        }
        let value = make()?;
        *held = Some(Arc::downgrade(&value));
        Ok(value)
    }
}

impl<K, V> Default for Kept<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K, T: ?Sized> Default for Shared<K, T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::Shared;

    #[test]
    fn shared_values_last_as_long_as_their_users() {
        let shared = Shared::<&str, u32>::default();
        let make = |value: u32| move || Ok::<_, ()>(Arc::new(value));
        let first = shared.get("a", make(1)).unwrap();
        assert_eq!(*shared.get("a", make(2)).unwrap(), 1);
        drop(first);
        assert_eq!(*shared.get("a", make(3)).unwrap(), 3);
        assert_eq!(shared.get("b", || Err("no")), Err("no"));
    }
}
