//! Represents the Namespace of a request as expressions see it (`namespaceObject`): only the fields that Kubernetes declares for
//! policies.

use serde_json::{Map, Value, json};

/// The metadata fields that are shown; others, such as managedFields, are hidden.
const METADATA: [&str; 12] = [
    "name",
    "generateName",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "finalizers",
];

/// Returns `namespace` without hidden fields; spec and status are always present, as in Kubernetes' own encoding.
pub(super) fn shown(namespace: &Value) -> Value {
    let metadata: Map<String, Value> = METADATA
        .into_iter()
        .filter_map(|field| Some((field.to_owned(), namespace.get("metadata")?.get(field)?.clone())))
        .collect();
    let part = |field: &str| namespace.get(field).cloned().unwrap_or_else(|| json!({}));
    json!({"metadata": metadata, "spec": part("spec"), "status": part("status")})
}
