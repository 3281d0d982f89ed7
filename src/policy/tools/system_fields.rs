//! Sets the metadata that a server generates before validating policies run: uid, creationTimestamp, generation.
//!
//! Manifests and cases lack it. An existing uid or timestamp is kept, since a server may have set it.

use std::time::SystemTime;

use serde_json::{Map, Value};

use crate::read::object::Object;
use crate::request::{GroupVersionResource, Operation, Request};
use crate::set::builtins::Builtins;
use crate::set::documents::Documents;

/// The identity of objects that have none.
const UID: &str = "00000000-0000-0000-0000-000000000000";

/// Completes the objects of a request as a server does between mutating and validating policies.
///
/// Without a time, creation is at the Unix epoch, so that reports are reproducible.
///
/// Objects of subresource requests whose kind is not stored, and objects without metadata, are left as they are.
///
/// ```
/// use admit_policy::{Documents, Request, with_system_fields};
/// use serde_json::json;
///
/// let request = json!({
///     "kind": {"group": "example.com", "version": "v1", "kind": "Cat"},
///     "resource": {"group": "example.com", "version": "v1", "resource": "cats"},
///     "operation": "CREATE",
///     "object": {"metadata": {"name": "tom", "deletionTimestamp": "2026-01-01T00:00:00Z"}},
/// });
/// let mut request = Request::from_value(&request)?;
/// with_system_fields(&mut request, &Documents::default(), None);
/// let object = request.object.unwrap().value().into_owned();
/// let fields = ["name", "uid", "creationTimestamp", "generation"];
/// assert_eq!(object["metadata"].as_object().unwrap().keys().collect::<Vec<_>>(), fields);
/// # Ok::<(), admit_policy::ReviewError>(())
/// ```
pub fn with_system_fields(request: &mut Request<'_>, host: &Documents, now: Option<SystemTime>) {
    let is_whole = matches!(request.subresource.as_str(), "" | "status");
    if !is_whole || !is_stored(&request.resource, host) {
        return;
    }
    let crd = host.crd_of(&request.kind);
    // For built-in kinds, the server's own tables tell which have a generation.
    let has_generation = crd.is_some() || host.builtins().is_none_or(|kinds| !has(kinds, &request.resource));
    let version = crd.and_then(|crd| crd.definition().version(&request.kind.version));
    let has_status = version.is_some_and(|version| version.status_subresource);
    let own = |object: &Option<Object<'_>>| object.as_ref().map(|object| object.value().into_owned());
    match request.operation {
        Operation::Create => {
            let Some(mut object) = own(&request.object) else { return };
            if let Some(metadata) = metadata_of(&mut object) {
                for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
                    metadata.shift_remove(field);
                }
                identify(metadata, now);
                if has_generation {
                    metadata.insert("generation".to_owned(), 1.into());
                }
            }
            request.object = Some(object.into());
        }
        Operation::Update => {
            let (Some(mut object), Some(mut old)) = (own(&request.object), own(&request.old_object)) else {
                return;
            };
            let is_changed = request.subresource.is_empty() && differs(&object, &old, has_status);
            let Some(before) = metadata_of(&mut old) else { return };
            identify(before, now);
            let counted = before.get("generation").and_then(Value::as_i64);
            if has_generation {
                before.entry("generation").or_insert_with(|| 1.into());
            }
            if let Some(metadata) = metadata_of(&mut object) {
                for field in ["uid", "creationTimestamp"] {
                    metadata.extend(before.get(field).map(|value| (field.to_owned(), value.clone())));
                }
                if has_generation {
                    let generation = counted.unwrap_or(1).saturating_add(i64::from(is_changed));
                    metadata.insert("generation".to_owned(), generation.into());
                }
            }
            (request.object, request.old_object) = (Some(object.into()), Some(old.into()));
        }
        Operation::Delete | Operation::Connect => {}
    }
}

/// Reviews and the like are answered and kept nowhere.
fn is_stored(resource: &GroupVersionResource, host: &Documents) -> bool {
    let Some(builtins) = host.builtins() else { return true };
    let GroupVersionResource { group, version, resource } = resource;
    let Some(kind) = builtins.kind_of(group, version, resource) else { return true };
    builtins.catalogue().is_none_or(|catalogue| catalogue.kind(&kind).is_some())
}

fn has(builtins: &dyn Builtins, resource: &GroupVersionResource) -> bool {
    builtins.kind_of(&resource.group, &resource.version, &resource.resource).is_some()
}

fn metadata_of(object: &mut Value) -> Option<&mut Map<String, Value>> {
    object.get_mut("metadata").and_then(Value::as_object_mut)
}

fn identify(metadata: &mut Map<String, Value>, now: Option<SystemTime>) {
    let mut fill = |field: &str, value: String| {
        let own = metadata.entry(field).or_insert(Value::Null);
        if own.is_null() {
            *own = value.into();
        }
    };
    fill("uid", UID.to_owned());
    fill("creationTimestamp", stamp(now.unwrap_or(SystemTime::UNIX_EPOCH)));
}

/// Formats a time in whole seconds, as objects do.
fn stamp(time: SystemTime) -> String {
    let time = jiff::Timestamp::try_from(time).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Whether anything differs that generations count.
fn differs(new: &Value, old: &Value, has_status: bool) -> bool {
    let (Some(new), Some(old)) = (new.as_object(), old.as_object()) else { return new != old };
    let counts = |name: &&String| *name != "metadata" && !(has_status && *name == "status");
    let names = new.keys().chain(old.keys()).filter(counts);
    names.into_iter().any(|name| new.get(name) != old.get(name))
}
