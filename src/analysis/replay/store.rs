//! Stores the last known state of each object of the cluster, as the log has shown it, within a limit of bytes. The least recently used
//! states are evicted, and counted.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::event::Head;

/// The size of an entry beside its strings: key and state, their places in both indexes, what the allocator adds to seven texts.
const ENTRY_BYTES: usize = 400;

/// Identifies an object, regardless of the version in which it is served.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct Key {
    pub(super) group: String,
    pub(super) resource: String,
    pub(super) namespace: String,
    pub(super) name: String,
}

/// The source of a state.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Origin {
    /// A dump, taken at an unrelated time.
    Dump,
    /// The response to an earlier request of the log.
    Log,
}

/// The last known state of an object.
#[derive(Clone, Debug)]
pub(super) struct Held {
    /// Its JSON text.
    pub(super) text: Arc<str>,
    pub(super) origin: Origin,
    /// The resourceVersion, if it is a number.
    pub(super) version: Option<u64>,
    pub(super) uid: Option<Arc<str>>,
    pub(super) generation: Option<i64>,
    used: u64,
    since: u64,
}

/// Group, resource and namespace; an empty namespace means all.
type Place = (String, String, String);

/// The maximum number of recorded collection deletions: beyond, all states are forgotten.
const MAX_EMPTIED: usize = 10_000;

/// The states, within a size limit.
#[derive(Debug)]
pub(super) struct Store {
    objects: HashMap<Arc<Key>, Held>,
    /// The objects by time of last use.
    order: BTreeMap<u64, Arc<Key>>,
    /// When a collection was deleted: older states in it are no longer valid.
    emptied: HashMap<Place, u64>,
    bytes: usize,
    most: usize,
    clock: u64,
    evicted: u64,
}

impl Store {
    pub(super) fn new(most: usize) -> Self {
        Self {
            objects: HashMap::new(),
            order: BTreeMap::new(),
            emptied: HashMap::new(),
            bytes: 0,
            most,
            clock: 0,
            evicted: 0,
        }
    }

    /// Returns the number of evicted states.
    pub(super) const fn evicted(&self) -> u64 {
        self.evicted
    }

    /// Returns the state of an object, and marks it as used.
    pub(super) fn get(&mut self, key: &Key) -> Option<&Held> {
        let now = self.tick();
        let (key, held) = self.objects.get_key_value(key)?;
        let key = Arc::clone(key);
        if !self.emptied.is_empty() && self.emptied_at(&key) > held.since {
            self.remove(&key);
            return None;
        }
        let held = self.objects.get_mut(&*key)?;
        self.order.remove(&held.used);
        held.used = now;
        self.order.insert(now, key);
        Some(held)
    }

    pub(super) fn insert(&mut self, key: Key, text: &str, origin: Origin, head: &Head) {
        self.remove(&key);
        let meta = head.metadata.as_ref();
        let uid = meta.and_then(|meta| meta.uid.as_deref()).map(Arc::from);
        let generation = meta.and_then(|meta| meta.generation);
        let held =
            Held { text: text.into(), origin, version: head.version(), uid, generation, used: 0, since: 0 };
        let size = held.size(&key);
        if size > self.most {
            self.evicted = self.evicted.saturating_add(1);
            return;
        }
        let (key, used) = (Arc::new(key), self.tick());
        self.bytes = self.bytes.saturating_add(size);
        self.order.insert(used, Arc::clone(&key));
        self.objects.insert(key, Held { used, since: used, ..held });
        while self.bytes > self.most {
            let Some((_, oldest)) = self.order.pop_first() else { break };
            if let Some(held) = self.objects.remove(&*oldest) {
                self.bytes = self.bytes.saturating_sub(held.size(&oldest));
                self.evicted = self.evicted.saturating_add(1);
            }
        }
    }

    /// Forgets the state of an object.
    pub(super) fn remove(&mut self, key: &Key) {
        let Some(held) = self.objects.remove(key) else { return };
        self.order.remove(&held.used);
        self.bytes = self.bytes.saturating_sub(held.size(key));
    }

    /// Forgets all objects of a resource in a namespace, or in all if that is empty, in constant time.
    pub(super) fn remove_all(&mut self, group: &str, resource: &str, namespace: &str) {
        let now = self.tick();
        if self.emptied.len() >= MAX_EMPTIED {
            *self = Self { clock: now, evicted: self.evicted, ..Self::new(self.most) };
        }
        self.emptied.insert((group.to_owned(), resource.to_owned(), namespace.to_owned()), now);
    }

    fn emptied_at(&self, key: &Key) -> u64 {
        let at = |namespace: &str| {
            let place = (key.group.clone(), key.resource.clone(), namespace.to_owned());
            self.emptied.get(&place).copied().unwrap_or(0)
        };
        at(&key.namespace).max(at(""))
    }

    fn tick(&mut self) -> u64 {
        self.clock = self.clock.saturating_add(1);
        self.clock
    }
}

impl Held {
    fn size(&self, key: &Key) -> usize {
        let Key { group, resource, namespace, name } = key;
        let uid = self.uid.as_ref().map_or(0, |uid| uid.len());
        [group.len(), resource.len(), namespace.len(), name.len(), self.text.len(), uid, ENTRY_BYTES]
            .into_iter()
            .fold(0, usize::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        Key { name: name.to_owned(), resource: "pods".to_owned(), ..Key::default() }
    }

    #[test]
    fn the_least_recently_used_goes_and_is_counted() {
        let text = "x".repeat(1_000);
        let mut store = Store::new(3 * (1_000 + ENTRY_BYTES + 5));
        for name in ["a", "b", "c"] {
            store.insert(key(name), &text, Origin::Log, &Head::default());
        }
        assert!(store.get(&key("a")).is_some());
        store.insert(key("d"), &text, Origin::Log, &Head::default());
        assert!(store.get(&key("b")).is_none(), "it was not used for the longest time");
        assert!(["a", "c", "d"].iter().all(|name| store.get(&key(name)).is_some()));
        assert_eq!(store.evicted(), 1);
        store.insert(key("a"), "y", Origin::Log, &Head::default());
        store.insert(key("e"), &"z".repeat(900 - ENTRY_BYTES), Origin::Log, &Head::default());
        assert_eq!(store.evicted(), 1, "the shorter state made room");
        store.insert(key("f"), &"z".repeat(10_000), Origin::Log, &Head::default());
        assert_eq!((store.evicted(), store.get(&key("f")).is_none()), (2, true), "it never fits");
        store.remove_all("", "pods", "");
        store.insert(key("g"), "later", Origin::Log, &Head::default());
        for name in ["a", "b", "c", "d", "e"] {
            assert!(store.get(&key(name)).is_none(), "{name} was deleted with all others");
        }
        assert!(store.get(&key("g")).is_some());
        store.remove(&key("g"));
        assert_eq!((store.bytes, store.objects.len(), store.order.len()), (0, 0, 0));
    }
}
