//! Defines a check and the pod that it is applied to.

use serde_json::Value;

use crate::admission::plugins::pods::{items, text};

/// A pod or a pod template.
pub(super) struct Subject<'o> {
    whole: &'o Value,
}

/// Says why a check failed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) reason: &'static str,
    pub(super) detail: String,
}

pub(super) type Check = fn(&Subject<'_>) -> Option<Failure>;

/// A check: its versions, each with the minor version that introduced it, and the check of the lower level that it
/// replaces.
pub(super) struct Row {
    pub(super) id: &'static str,
    pub(super) versions: &'static [(u32, Check)],
    pub(super) overrides: Option<&'static str>,
}

impl<'o> Subject<'o> {
    pub(super) const fn of(pod: &'o Value) -> Self {
        Self { whole: pod }
    }

    pub(super) fn annotations(&self) -> impl Iterator<Item = (&'o str, &'o str)> {
        crate::object::meta_map(self.whole, "annotations")
    }

    /// Returns the value at this path of the specification.
    pub(super) fn at(&self, pointer: &str) -> Option<&'o Value> {
        self.whole.get("spec")?.pointer(pointer).filter(|value| !value.is_null())
    }

    pub(super) fn volumes(&self) -> impl Iterator<Item = &'o Value> {
        items(self.whole, "/spec/volumes")
    }

    /// Returns all containers, in the order in which checks name them.
    pub(super) fn containers(&self) -> impl Iterator<Item = &'o Value> {
        ["/spec/initContainers", "/spec/containers", "/spec/ephemeralContainers"]
            .into_iter()
            .flat_map(|list| items(self.whole, list))
    }

    pub(super) fn is_of_windows(&self) -> bool {
        text(self.whole, "/spec/os/name") == "windows"
    }

    /// Returns whether the pod runs in a user namespace of its own.
    pub(super) fn has_own_users(&self) -> bool {
        self.at("/hostUsers") == Some(&Value::Bool(false))
    }
}

impl Row {
    pub(super) fn at(&self, minor: u32) -> Option<Check> {
        self.versions.iter().rev().find(|(since, _)| *since <= minor).map(|(_, check)| *check)
    }
}
