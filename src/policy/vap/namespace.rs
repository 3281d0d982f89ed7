//! Represents the Namespace of a request as expressions see it (`namespaceObject`): only the fields that Kubernetes declares for
//! policies.

use serde_json::{Map, Value, json};

/// What of the metadata is shown; the rest, such as managedFields, is nobody's business here.
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

/// `namespace` without what is not shown; spec and status are there in any case, as in Kubernetes' own encoding.
pub(super) fn shown(namespace: &Value) -> Value {
    let metadata: Map<String, Value> = METADATA
        .into_iter()
        .filter_map(|field| Some((field.to_owned(), namespace.get("metadata")?.get(field)?.clone())))
        .collect();
    let part = |field: &str| namespace.get(field).cloned().unwrap_or_else(|| json!({}));
    json!({"metadata": metadata, "spec": part("spec"), "status": part("status")})
}
