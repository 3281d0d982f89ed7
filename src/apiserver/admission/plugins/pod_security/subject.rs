//! What a check is, and the pod that it looks at.

use serde_json::Value;

use crate::admission::plugins::pods::{items, text};

/// A pod, or the template of one.
pub(super) struct Subject<'o> {
    whole: &'o Value,
}

/// Why a check is not passed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) reason: &'static str,
    pub(super) detail: String,
}

pub(super) type Check = fn(&Subject<'_>) -> Option<Failure>;

/// A check, each of its versions with the minor version that it came with, and the check of the lower level whose place it
/// takes.
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

    /// What stands at this path in the specification.
    pub(super) fn at(&self, pointer: &str) -> Option<&'o Value> {
        self.whole.get("spec")?.pointer(pointer).filter(|value| !value.is_null())
    }

    pub(super) fn volumes(&self) -> impl Iterator<Item = &'o Value> {
        items(self.whole, "/spec/volumes")
    }

    /// All containers, in the order in which checks name them.
    pub(super) fn containers(&self) -> impl Iterator<Item = &'o Value> {
        ["/spec/initContainers", "/spec/containers", "/spec/ephemeralContainers"]
            .into_iter()
            .flat_map(|list| items(self.whole, list))
    }

    pub(super) fn is_of_windows(&self) -> bool {
        text(self.whole, "/spec/os/name") == "windows"
    }

    /// Whether root in the pod is nobody outside of it.
    pub(super) fn has_own_users(&self) -> bool {
        self.at("/hostUsers") == Some(&Value::Bool(false))
    }
}

impl Row {
    pub(super) fn at(&self, minor: u32) -> Option<Check> {
        self.versions.iter().rev().find(|(since, _)| *since <= minor).map(|(_, check)| *check)
    }
}
