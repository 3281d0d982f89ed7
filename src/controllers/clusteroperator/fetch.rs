//! First stage: reads the payload from disk, and the ClusterOperators as the watch last reported them.

use std::collections::BTreeMap;

use kube::ResourceExt;
use kube::core::DeserializeGuard;
use kube::runtime::watcher::Event;

use super::crd::ClusterOperator;

/// The ClusterOperators of the cluster. Those that cannot be parsed are only known to exist, and are left alone.
#[derive(Debug, Default)]
pub(super) struct Live {
    listed: bool,
    objects: BTreeMap<String, Option<ClusterOperator>>,
    listing: BTreeMap<String, Option<ClusterOperator>>,
}

impl Live {
    pub(super) fn hear(&mut self, event: Event<DeserializeGuard<ClusterOperator>>) {
        match event {
            Event::Init => self.listing.clear(),
            Event::InitApply(object) => drop(self.listing.insert(object.name_any(), object.0.ok())),
            Event::InitDone => {
                self.objects = std::mem::take(&mut self.listing);
                self.listed = true;
            }
            Event::Apply(object) => drop(self.objects.insert(object.name_any(), object.0.ok())),
            Event::Delete(object) => drop(self.objects.remove(&object.name_any())),
        }
    }

    /// Records the result of this process' own write before the watch reports it.
    pub(super) fn wrote(&mut self, object: ClusterOperator) {
        self.objects.insert(object.name_any(), Some(object));
    }

    /// Records that one with this name exists; the watch will report it.
    pub(super) fn exists(&mut self, name: &str) {
        self.objects.entry(name.to_owned()).or_insert(None);
    }

    /// Whether the initial list is complete.
    #[must_use]
    pub(super) fn listed(&self) -> bool {
        self.listed
    }

    /// Returns those that can be parsed.
    pub(super) fn all(&self) -> impl Iterator<Item = (&str, &ClusterOperator)> {
        self.objects.iter().filter_map(|(name, object)| Some((name.as_str(), object.as_ref()?)))
    }

    /// Returns a ClusterOperator: None if there is none; `Some(None)` if it cannot be parsed.
    #[must_use]
    pub(super) fn get(&self, name: &str) -> Option<Option<&ClusterOperator>> {
        self.objects.get(name).map(Option::as_ref)
    }
}
