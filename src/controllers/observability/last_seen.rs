//! Holds the last state of this cluster's add-on that was reconciled, shared with the link to the hub.

use std::sync::Arc;

use tokio::sync::watch;

use super::crd::ObservabilityAddon;

/// The add-on after its last reconciliation; clones share it.
#[derive(Clone, Debug)]
pub(super) struct LastSeen(Arc<watch::Sender<Option<ObservabilityAddon>>>);

impl Default for LastSeen {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(None)))
    }
}

impl LastSeen {
    /// Returns the add-on; None if there is none, and before the first reconciliation.
    pub(super) fn get(&self) -> Option<ObservabilityAddon> {
        self.0.borrow().clone()
    }

    /// Sets the add-on; receivers are notified of changes that matter on a hub.
    pub(super) fn set(&self, object: Option<ObservabilityAddon>) {
        self.0.send_if_modified(|seen| {
            let shown = |object: &Option<ObservabilityAddon>| {
                object.as_ref().map(|object| {
                    let meta = &object.metadata;
                    let status = object.conditions().to_vec();
                    (meta.uid.clone(), meta.annotations.clone(), object.spec.clone(), status)
                })
            };
            let changed = shown(seen) != shown(&object);
            *seen = object;
            changed
        });
    }

    pub(super) fn changes(&self) -> watch::Receiver<Option<ObservabilityAddon>> {
        self.0.subscribe()
    }
}
