//! Namespaces: the name label, the phase, and the separate list of finalizers in the spec.

use serde_json::{Value, json};

use crate::call::Call;
use crate::object;
use crate::resources::Subresource;

const NAME_LABEL: &str = "kubernetes.io/metadata.name";

pub(super) fn prepare_create(namespace: &mut Value) {
    name_label(namespace);
    let finalizers = namespace.pointer("/spec/finalizers").and_then(Value::as_array);
    let mut finalizers = finalizers.cloned().unwrap_or_default();
    if !finalizers.iter().any(|finalizer| finalizer == "kubernetes") {
        finalizers.push("kubernetes".into());
    }
    namespace["spec"]["finalizers"] = finalizers.into();
    namespace["status"] = json!({"phase": "Active"});
}

/// Only `/finalize` changes the finalizers of the specification.
pub(super) fn prepare_update(call: &Call, namespace: &mut Value, old: &Value) {
    name_label(namespace);
    if call.subresource != Some(Subresource::Finalize) {
        object::set_field(namespace, "spec", old.get("spec").cloned());
    }
}

pub(super) fn mark_deleted(namespace: &mut Value) {
    namespace["status"]["phase"] = "Terminating".into();
}

pub(super) fn is_empty_of_finalizers(namespace: &Value) -> bool {
    namespace.pointer("/spec/finalizers").and_then(Value::as_array).is_none_or(Vec::is_empty)
}

/// The label by which others select the namespace. A name that is still to be made gets it later.
pub(super) fn name_label(namespace: &mut Value) {
    let name = object::name(namespace).to_owned();
    if name.is_empty() {
        return;
    }
    object::member_mut(object::meta_mut(namespace), "labels").insert(NAME_LABEL.to_owned(), name.into());
}
