//! Caches watched objects other than the controller's own, or parts of them, so that a reconciliation need not query the
//! server.
//!
//! The cache may be behind, and never proves that an object does not exist: the watch may report its creation later. A
//! change is cached before the reconciliation that it triggers; an object whose deletion was missed while a watch was
//! broken is noticed by the next list.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use kube::Resource;
use kube::runtime::watcher::Event;

/// Namespace and name.
type Place = (String, String);

/// A cache; clones share it.
pub struct Cache<V>(Arc<Mutex<Known<V>>>);

struct Known<V> {
    values: BTreeMap<Place, V>,
    /// The objects in the current list.
    listed: BTreeSet<Place>,
}

impl<V> Clone for Cache<V> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<V> Default for Cache<V> {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Known { values: BTreeMap::new(), listed: BTreeSet::new() })))
    }
}

impl<V> fmt::Debug for Cache<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").finish_non_exhaustive()
    }
}

impl<V> Cache<V> {
    /// Returns the cached value of an object; None if the watch has not reported it.
    #[must_use]
    pub fn get(&self, namespace: &str, name: &str) -> Option<V>
    where
        V: Clone,
    {
        self.lock().values.get(&(namespace.to_owned(), name.to_owned())).cloned()
    }

    /// Returns the first result of `pick` in a namespace.
    pub fn find<T>(&self, namespace: &str, pick: impl Fn(&V) -> Option<T>) -> Option<T> {
        let known = self.lock();
        let from = (namespace.to_owned(), String::new());
        let own = known.values.range(from..).take_while(|((of, _), _)| of == namespace);
        own.map(|(_, value)| value).find_map(pick)
    }

    /// Handles `event`; `value` returns what is kept of an object. Returns the old and new values of the objects concerned.
    pub(super) fn hear<C: Resource>(&self, event: Event<C>, value: impl Fn(C) -> V) -> Vec<V>
    where
        V: Clone,
    {
        let mut known = self.lock();
        match event {
            Event::Init => {
                known.listed.clear();
                Vec::new()
            }
            Event::InitApply(object) => {
                let place = place(&object);
                let kept = value(object);
                known.listed.insert(place.clone());
                known.values.insert(place, kept.clone());
                vec![kept]
            }
            Event::InitDone => {
                let listed = std::mem::take(&mut known.listed);
                known
                    .values
                    .extract_if(.., |place, _| !listed.contains(place))
                    .map(|(_, gone)| gone)
                    .collect()
            }
            Event::Apply(object) => {
                let place = place(&object);
                let kept = value(object);
                known.values.insert(place, kept.clone());
                vec![kept]
            }
            Event::Delete(object) => {
                known.values.remove(&place(&object));
                vec![value(object)]
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Known<V>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes the pod template, annotations and managed fields of a Job, which are most of its size.
#[must_use]
pub fn slim_job(mut job: Job) -> Job {
    job.metadata.managed_fields = None;
    job.metadata.annotations = None;
    if let Some(spec) = &mut job.spec {
        spec.template = PodTemplateSpec::default();
    }
    job
}

fn place(object: &impl Resource) -> Place {
    let meta = object.meta();
    (meta.namespace.clone().unwrap_or_default(), meta.name.clone().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::core::ObjectMeta;

    use super::*;

    fn map(namespace: &str, name: &str, version: &str) -> ConfigMap {
        let text = |text: &str| Some(text.to_owned());
        let (namespace, name, resource_version) = (text(namespace), text(name), text(version));
        let metadata = ObjectMeta { namespace, name, resource_version, ..ObjectMeta::default() };
        ConfigMap { metadata, ..ConfigMap::default() }
    }

    #[test]
    fn what_a_watch_tells_is_known_and_what_it_missed_is_told() {
        let kept: Cache<String> = Cache::default();
        let version = |map: ConfigMap| map.metadata.resource_version.unwrap_or_default();
        let hear = |event| kept.hear(event, version);
        assert_eq!(hear(Event::Init), Vec::<String>::new());
        for (namespace, name, number) in [("a", "x", "1"), ("b", "x", "2"), ("b", "y", "3")] {
            assert_eq!(hear(Event::InitApply(map(namespace, name, number))), [number]);
        }
        assert_eq!(hear(Event::InitDone), Vec::<String>::new());
        assert_eq!(hear(Event::Apply(map("b", "x", "4"))), ["4"]);
        assert_eq!((kept.get("b", "x").as_deref(), kept.get("c", "x")), (Some("4"), None));
        let second = |value: &String| (value != "4").then(|| value.clone());
        assert_eq!((kept.find("b", second).as_deref(), kept.find("", second)), (Some("3"), None));
        assert_eq!(hear(Event::Delete(map("b", "x", "5"))), ["5"]);
        assert_eq!(kept.get("b", "x"), None);
        // The watch broke, and one of two objects was deleted meanwhile.
        hear(Event::Init);
        hear(Event::InitApply(map("a", "x", "1")));
        assert_eq!(kept.get("b", "y").as_deref(), Some("3"));
        assert_eq!(hear(Event::InitDone), ["3"]);
        assert_eq!((kept.get("b", "y"), kept.get("a", "x").as_deref()), (None, Some("1")));
    }
}
