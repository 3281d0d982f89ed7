//! Caches the objects of one kind, as last reported by the cluster, and knows whether they are up to date.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use admit_policy::HostError;
use serde_json::Value;

/// How long cached objects are used after their watch broke. A watch that is re-established soon is no reason to
/// fail requests; a longer outage is.
const TOLERANCE: Duration = Duration::from_secs(60);

/// Namespace (empty for cluster-scoped kinds) and name.
pub(super) type ObjectKey = (String, String);

/// The cache, read by deciding threads, and written by the watch.
#[derive(Debug)]
pub(super) struct Collection {
    /// The plural name of the kind in messages: `namespaces`.
    name: String,
    state: RwLock<State>,
}

#[derive(Debug, Default)]
struct State {
    objects: BTreeMap<ObjectKey, Arc<Value>>,
    listed: bool,
    /// Since when the watch is broken.
    broken: Option<Instant>,
}

impl Collection {
    pub(super) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), state: RwLock::default() }
    }

    /// # Errors
    /// When the objects were never listed, or their watch has been broken for too long.
    pub(super) fn get(&self, namespace: &str, name: &str) -> Result<Option<Arc<Value>>, HostError> {
        self.read(|objects| objects.get(&(namespace.to_owned(), name.to_owned())).cloned())
    }

    /// Returns the objects in `namespace`, sorted by name.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub(super) fn of(&self, namespace: &str) -> Result<Vec<Arc<Value>>, HostError> {
        self.read(|objects| {
            let inside = objects.range((namespace.to_owned(), String::new())..);
            inside
                .take_while(|((own, _), _)| own == namespace)
                .map(|(_, object)| Arc::clone(object))
                .collect()
        })
    }

    /// Returns all objects, sorted by namespace and name.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub(super) fn all(&self) -> Result<Vec<Arc<Value>>, HostError> {
        self.read(|objects| objects.values().cloned().collect())
    }

    /// Returns why the objects are not reliable, if so.
    pub(super) fn trouble(&self) -> Option<HostError> {
        self.read(|_| ()).err()
    }

    fn read<T>(&self, answer: impl FnOnce(&BTreeMap<ObjectKey, Arc<Value>>) -> T) -> Result<T, HostError> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        if !state.listed {
            return Err(HostError(format!("{}: not listed yet", self.name)));
        }
        match state.broken.map(|since| since.elapsed()) {
            Some(silent) if silent > TOLERANCE => {
                let seconds = silent.as_secs();
                Err(HostError(format!("{}: nothing was heard from the cluster for {seconds} s", self.name)))
            }
            _ => Ok(answer(&state.objects)),
        }
    }

    /// Replaces all objects by a complete list.
    pub(super) fn replace(&self, objects: BTreeMap<ObjectKey, Arc<Value>>) {
        self.write(|state| *state = State { objects, listed: true, broken: None });
    }

    pub(super) fn apply(&self, key: ObjectKey, object: Arc<Value>) {
        self.write(|state| drop(state.objects.insert(key, object)));
    }

    pub(super) fn remove(&self, key: &ObjectKey) {
        self.write(|state| drop(state.objects.remove(key)));
    }

    /// Records that the watch broke at `at`, unless it was broken already.
    pub(super) fn broke(&self, at: Instant) {
        self.write(|state| {
            state.broken.get_or_insert(at);
        });
    }

    fn write(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.write().unwrap_or_else(PoisonError::into_inner));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn key(namespace: &str, name: &str) -> ObjectKey {
        (namespace.to_owned(), name.to_owned())
    }

    #[test]
    fn nothing_is_answered_before_the_first_list_and_long_after_a_break() {
        let collection = Collection::new("limits");
        assert_eq!(collection.get("a", "x"), Err(HostError("limits: not listed yet".to_owned())));
        let object = Arc::new(json!({}));
        collection.replace([(key("a", "x"), object.clone()), (key("b", "y"), object.clone())].into());
        assert_eq!(collection.get("a", "x"), Ok(Some(object.clone())));

        assert_eq!(collection.of("a").map(|objects| objects.len()), Ok(1));
        collection.broke(Instant::now());
        assert_eq!(collection.get("a", "z"), Ok(None), "a short break is nothing");
        let Some(long_ago) = Instant::now().checked_sub(TOLERANCE * 2) else { return };
        let collection = Collection::new("limits");
        collection.replace([(key("a", "x"), object)].into());
        collection.broke(long_ago);
        collection.broke(Instant::now());
        let error = collection.get("a", "x").unwrap_err().to_string();
        assert!(error.starts_with("limits: nothing was heard from the cluster for "), "{error}");
        collection.replace(BTreeMap::new());
        assert_eq!(collection.get("a", "x"), Ok(None));
    }
}
