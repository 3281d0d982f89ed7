//! Restricts a write to the fields that its path may change: the main path keeps the old status, a subresource
//! keeps everything except its own fields.

use serde_json::{Map, Value};

use crate::call::Call;
use crate::object;
use crate::resources::{self, Subresource};

/// The metadata that clients may change.
const METADATA: [&str; 4] = ["labels", "annotations", "finalizers", "ownerReferences"];

const METADATA_MEMBER: &str = "metadata";

/// The managed fields, which change with every write.
const ENTRIES: &str = "managedFields";

/// The lists of containers that can be resized, and the fields that a resize changes.
const LISTS: [&str; 2] = ["containers", "initContainers"];
const RESIZED: [&str; 2] = ["resources", "resizePolicy"];

/// Resets everything in the sent object that the path does not write to the old object's values.
pub(super) fn reset(call: &Call, new: &mut Value, old: &Value) {
    match call.subresource {
        Some(Subresource::Status) => {
            // Most built-in kinds allow metadata changes on the status path, and validate all of them.
            let changes = |field: &str| {
                (call.info.builtin || METADATA.contains(&field)) && !call.info.status_keeps(field)
            };
            keep(new, old, |half| half == "status", |field| field == ENTRIES || changes(field));
        }
        Some(Subresource::Approval) => {
            keep(new, old, |half| half == "status", |_| true);
            keep_members(object::member_mut(object::map_of(new), "status"), old.get("status"), |name| {
                name == "conditions"
            });
        }
        Some(Subresource::Finalize) => put(object::map_of(new), "status", old.get("status")),
        Some(Subresource::EphemeralContainers) => keep_but(new, old, ["spec", "ephemeralContainers"]),
        Some(Subresource::Resize) => resize(new, old),
        // The server itself builds the whole change.
        Some(Subresource::Binding) => {}
        _ if call.info.serves(Subresource::Status) => {
            put(object::map_of(new), "status", old.get("status"));
        }
        _ => {}
    }
}

/// Sets `new` to the old object, except the written members and metadata fields. A member is removed before
/// its copy is made, so that a large object is in memory twice and not three times.
fn keep(new: &mut Value, old: &Value, is_written: impl Fn(&str) -> bool, is_own: impl Fn(&str) -> bool) {
    keep_members(object::map_of(new), Some(old), |name| name == METADATA_MEMBER || is_written(name));
    keep_members(object::meta_mut(new), old.get(METADATA_MEMBER), is_own);
}

fn keep_members(new: &mut Map<String, Value>, old: Option<&Value>, is_written: impl Fn(&str) -> bool) {
    let nothing = Map::new();
    let old = old.and_then(Value::as_object).unwrap_or(&nothing);
    new.retain(|name, _| is_written(name) || old.contains_key(name));
    for (name, value) in old.iter().filter(|(name, _)| !is_written(name)) {
        put(new, name, Some(value));
    }
}

/// Replaces a member by a copy of `value`, removing it first; or removes it.
fn put(members: &mut Map<String, Value>, name: &str, value: Option<&Value>) {
    match (members.get_mut(name), value) {
        (Some(member), Some(value)) => {
            *member = Value::Null;
            *member = object::copied(value);
        }
        (None, Some(value)) => {
            members.insert(name.to_owned(), object::copied(value));
        }
        (_, None) => {
            members.shift_remove(name);
        }
    }
}

/// Sets `new` to the old object with one field of spec or status as it was sent.
fn keep_but(new: &mut Value, old: &Value, [half, field]: [&str; 2]) {
    keep(new, old, |member| member == half, |field| !resources::RESET_FOR_STATUS.contains(&field));
    keep_members(object::member_mut(object::map_of(new), half), old.get(half), |name| name == field);
}

/// Sets `new` to the old pod with the sent resources and resize policies of the pod and its containers. If containers were
/// added, removed or reordered, they stay as sent: validation refuses them.
fn resize(new: &mut Value, old: &Value) {
    if LISTS.iter().any(|list| names(new, list).len() != names(old, list).len()) {
        return;
    }
    let own = new.pointer_mut("/spec/resources").map(Value::take);
    let lists = LISTS.map(|list| {
        let is_renamed = names(new, list) != names(old, list);
        (list, is_renamed, new.pointer_mut(&format!("/spec/{list}")).map(Value::take))
    });
    keep(new, old, |_| false, |field| !resources::RESET_FOR_STATUS.contains(&field));
    let spec = &mut new["spec"];
    object::set_field(spec, "resources", own.filter(|own| !own.is_null()));
    for (list, is_renamed, sent) in lists {
        if is_renamed {
            object::set_field(spec, list, sent);
            continue;
        }
        let sent = sent.as_ref().and_then(Value::as_array).into_iter().flatten();
        let containers = spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
        for (container, sized) in containers.zip(sent) {
            for field in RESIZED {
                object::set_field(container, field, sized.get(field).cloned());
            }
        }
    }
}

/// Returns the names of the containers in a list.
fn names<'p>(pod: &'p Value, list: &str) -> Vec<&'p str> {
    let containers = pod.pointer(&format!("/spec/{list}")).and_then(Value::as_array).into_iter().flatten();
    let name = |container: &'p Value| container.get("name").and_then(Value::as_str).unwrap_or_default();
    containers.map(name).collect()
}
