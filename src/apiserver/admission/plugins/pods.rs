//! Reads parts of pods that several plugins need.

use serde_json::Value;

/// Returns the string at this path; empty when there is none.
pub(super) fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the items of the list at this path.
pub(super) fn items<'v>(value: &'v Value, pointer: &str) -> impl Iterator<Item = &'v Value> + use<'v> {
    value.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

/// The paths of the containers that a pod starts with.
pub(super) const STARTED: [&str; 2] = ["/spec/initContainers", "/spec/containers"];

/// The paths of all containers of a pod.
pub(super) const CONTAINERS: [&str; 3] = [STARTED[0], STARTED[1], "/spec/ephemeralContainers"];
