//! Which part of an object a path writes: the main path leaves the status alone, a subresource leaves alone what is not
//! its own.

use serde_json::Value;

use super::{Call, kinds};
use crate::object;
use crate::resources::Subresource;

/// What clients may change of the metadata.
const METADATA: [&str; 4] = ["labels", "annotations", "finalizers", "ownerReferences"];

/// Puts back, into what the client sent, everything of the old object that the path does not write.
pub(super) fn keep_others(call: &Call, new: &mut Value, old: &Value) {
    match call.subresource {
        Some(Subresource::Status) => {
            merge(new, old, |merged, new| {
                object::set_field(merged, "status", new.get("status").cloned());
                kinds::keep_approval(&call.info, merged, old);
                // Most built-in kinds let the status path change metadata as well.
                for field in METADATA.into_iter().filter(|field| !call.info.status_keeps(field)) {
                    object::copy_meta(new, merged, field);
                }
            });
        }
        Some(Subresource::Approval) => merge(new, old, |merged, new| {
            let conditions = new.pointer("/status/conditions").cloned();
            object::set_field(&mut merged["status"], "conditions", conditions);
        }),
        Some(Subresource::Finalize) => merge(new, old, |merged, new| {
            let finalizers = new.pointer("/spec/finalizers").cloned();
            object::set_field(&mut merged["spec"], "finalizers", finalizers);
        }),
        Some(Subresource::EphemeralContainers) => merge(new, old, |merged, new| {
            let containers = new.pointer("/spec/ephemeralContainers").cloned();
            object::set_field(&mut merged["spec"], "ephemeralContainers", containers);
        }),
        Some(Subresource::Resize) => merge(new, old, |merged, new| {
            for list in ["containers", "initContainers"] {
                resize(&mut merged["spec"], new.pointer(&format!("/spec/{list}")), list);
            }
        }),
        // The server makes all of the change itself.
        Some(Subresource::Binding) => {}
        _ if call.info.serves(Subresource::Status) && !kinds::status_is_kept(&call.info) => {
            object::set_field(new, "status", old.get("status").cloned());
        }
        _ => {}
    }
}

/// Makes `new` the old object with what `take` takes over from it. Who manages what goes with every change.
fn merge(new: &mut Value, old: &Value, take: impl FnOnce(&mut Value, &Value)) {
    let mut merged = old.clone();
    take(&mut merged, new);
    object::copy_meta(new, &mut merged, "managedFields");
    *new = merged;
}

/// Takes over the resources, and when they may change, of the containers that both lists have.
fn resize(spec: &mut Value, wanted: Option<&Value>, list: &str) {
    let wanted = wanted.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
        let Some(sized) = wanted.iter().find(|other| other.get("name") == container.get("name")) else {
            continue;
        };
        for field in ["resources", "resizePolicy"] {
            object::set_field(container, field, sized.get(field).cloned());
        }
    }
}
