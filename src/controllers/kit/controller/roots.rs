//! Tracks the objects of the controller's own kind, as the watch reports them: which must be reconciled, and which were deleted,
//! even if the deletion itself was missed or another object has the name by now.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::core::DeserializeGuard;
use kube::runtime::predicates;
use kube::runtime::reflector::{self, Store};
use kube::runtime::watcher::Event;

use super::Root;
use crate::controllers::kit::key::Key;

/// Computes a number whose change triggers a reconciliation. None counts as a change.
pub(super) type Predicate<K> = Box<dyn Fn(&K) -> Option<u64> + Send + Sync>;

pub(super) struct Roots<K: Root> {
    writer: reflector::store::Writer<DeserializeGuard<K>>,
    store: Store<DeserializeGuard<K>>,
    predicate: Option<Predicate<K>>,
    /// By namespace and name: the uid, and the result of the predicate.
    known: BTreeMap<(String, String), (String, Option<u64>)>,
    /// The same for the current list.
    listed: BTreeMap<(String, String), (String, Option<u64>)>,
    ready: bool,
}

/// The consequences of an event.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Told {
    pub(super) changed: Vec<Key>,
    pub(super) gone: Vec<Key>,
}

impl<K: Root> Roots<K> {
    pub(super) fn new() -> Self {
        let (store, writer) = reflector::store();
        Self { writer, store, predicate: None, known: BTreeMap::new(), listed: BTreeMap::new(), ready: false }
    }

    pub(super) fn store(&self) -> Store<DeserializeGuard<K>> {
        self.store.clone()
    }

    pub(super) fn look_at(&mut self, predicate: Predicate<K>) {
        self.predicate = Some(predicate);
    }

    /// Whether the initial list is complete.
    pub(super) fn ready(&self) -> bool {
        self.ready
    }

    /// Returns the object, unless it was deleted or replaced by another one with its name.
    pub(super) fn get(&self, key: &Key) -> Option<Arc<DeserializeGuard<K>>> {
        self.store.get(&key.reference()).filter(|object| Key::of(object.as_ref()).uid == key.uid)
    }

    pub(super) fn keys(&self) -> Vec<Key> {
        self.known.iter().map(|(place, (uid, _))| key(place, uid)).collect()
    }

    pub(super) fn hear(&mut self, event: &Event<DeserializeGuard<K>>) -> Told {
        self.writer.apply_watcher_event(event);
        match event {
            Event::Init => {
                self.listed.clear();
                Told::default()
            }
            Event::InitApply(object) => {
                let (place, value) = self.seen(object);
                self.listed.insert(place, value);
                Told::default()
            }
            Event::InitDone => self.compare(),
            Event::Apply(object) => {
                let (place, (uid, hash)) = self.seen(object);
                let changed = key(&place, &uid);
                let before = self.known.insert(place.clone(), (uid, hash));
                told(&place, before, Some((changed, hash)))
            }
            Event::Delete(object) => {
                let place = place(object);
                let before = self.known.remove(&place);
                told(&place, before, None)
            }
        }
    }

    /// Handles the end of a list: objects missing in it were deleted, and changed ones must be reconciled.
    fn compare(&mut self) -> Told {
        self.ready = true;
        let mut before = std::mem::replace(&mut self.known, std::mem::take(&mut self.listed));
        let mut all = Told::default();
        for (place, (uid, hash)) in &self.known {
            let one = told(place, before.remove(place), Some((key(place, uid), *hash)));
            all.changed.extend(one.changed);
            all.gone.extend(one.gone);
        }
        all.gone.extend(before.into_iter().map(|(place, (uid, _))| key(&place, &uid)));
        all
    }

    fn seen(&self, object: &DeserializeGuard<K>) -> ((String, String), (String, Option<u64>)) {
        let hash = match (&object.0, &self.predicate) {
            (Ok(object), Some(predicate)) => predicate(object),
            (Ok(_), None) | (Err(_), _) => predicates::resource_version(object),
        };
        (place(object), (Key::of(object).uid, hash))
    }
}

fn place<K: Root>(object: &DeserializeGuard<K>) -> (String, String) {
    let Key { namespace, name, uid: _ } = Key::of(object);
    (namespace, name)
}

fn key((namespace, name): &(String, String), uid: &str) -> Key {
    Key { namespace: namespace.clone(), name: name.clone(), uid: uid.to_owned() }
}

/// Returns the consequences of the change from `before` to `now`, where None is a missing object.
fn told(
    place: &(String, String),
    before: Option<(String, Option<u64>)>,
    now: Option<(Key, Option<u64>)>,
) -> Told {
    let same = matches!((&before, &now), (Some((uid, _)), Some((key, _))) if *uid == key.uid);
    let unchanged =
        same && matches!((&before, &now), (Some((_, Some(old))), Some((_, Some(new)))) if old == new);
    let gone = before.filter(|_| !same).map(|(uid, _)| key(place, &uid));
    Told {
        changed: now.filter(|_| !unchanged).map(|(key, _)| key).into_iter().collect(),
        gone: gone.into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::core::ObjectMeta;

    use super::*;

    fn object(name: &str, uid: &str, version: &str) -> DeserializeGuard<ConfigMap> {
        let text = |text: &str| Some(text.to_owned());
        let metadata = ObjectMeta {
            namespace: text("n"),
            name: text(name),
            uid: text(uid),
            resource_version: text(version),
            ..ObjectMeta::default()
        };
        DeserializeGuard(Ok(ConfigMap { metadata, ..ConfigMap::default() }))
    }

    fn shown(keys: &[Key]) -> String {
        let shown: Vec<_> = keys.iter().map(|key| format!("{key}:{}", key.uid)).collect();
        shown.join(" ")
    }

    fn heard(roots: &mut Roots<ConfigMap>, event: &Event<DeserializeGuard<ConfigMap>>) -> (String, String) {
        let told = roots.hear(event);
        (shown(&told.changed), shown(&told.gone))
    }

    fn relist(roots: &mut Roots<ConfigMap>, objects: &[(&str, &str, &str)]) -> (String, String) {
        roots.hear(&Event::Init);
        for (name, uid, version) in objects {
            assert_eq!(roots.hear(&Event::InitApply(object(name, uid, version))), Told::default());
        }
        heard(roots, &Event::InitDone)
    }

    #[test]
    fn deletions_are_told_also_where_nobody_saw_them() {
        let mut roots = Roots::new();
        let both = |changed: &str, gone: &str| (changed.to_owned(), gone.to_owned());
        assert!(!roots.ready());
        assert_eq!(relist(&mut roots, &[("a", "1", "1"), ("b", "2", "2")]), both("n/a:1 n/b:2", ""));
        assert!(roots.ready());
        assert_eq!(heard(&mut roots, &Event::Delete(object("a", "1", "3"))), both("", "n/a:1"));
        // Deleted and created again while the watch was broken; and deleted without a successor.
        assert_eq!(relist(&mut roots, &[("b", "5", "9")]), both("n/b:5", "n/b:2"));
        assert_eq!(relist(&mut roots, &[]), both("", "n/b:5"));
        // Another object has the name before the deletion was reported.
        heard(&mut roots, &Event::Apply(object("c", "6", "10")));
        assert_eq!(heard(&mut roots, &Event::Apply(object("c", "7", "12"))), both("n/c:7", "n/c:6"));
        let stale = Key { namespace: "n".to_owned(), name: "c".to_owned(), uid: "6".to_owned() };
        assert!(roots.get(&stale).is_none());
    }

    #[test]
    fn only_what_changed_is_looked_at() {
        let mut roots = Roots::new();
        relist(&mut roots, &[("a", "1", "1")]);
        assert_eq!(relist(&mut roots, &[("a", "1", "1")]).0, "", "the same list again");
        assert_eq!(heard(&mut roots, &Event::Apply(object("a", "1", "2"))).0, "n/a:1");
        roots.look_at(Box::new(predicates::labels));
        heard(&mut roots, &Event::Apply(object("a", "1", "3")));
        assert_eq!(heard(&mut roots, &Event::Apply(object("a", "1", "4"))).0, "", "the labels are the same");
        roots.look_at(Box::new(predicates::generation));
        assert_eq!(
            heard(&mut roots, &Event::Apply(object("a", "1", "5"))).0,
            "n/a:1",
            "without a generation"
        );
    }
}
