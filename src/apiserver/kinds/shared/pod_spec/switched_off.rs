//! Removes fields of features that are off by default, unless the old object has them
//! (`dropDisabledFields` of pkg/api/pod).

use serde_json::Value;

use super::{SPECS, at, at_mut};
use crate::object;

/// The sources of projected volumes that are off.
const PROJECTIONS: [&str; 2] = ["clusterTrustBundle", "podCertificate"];

/// Removes such fields from all pod specifications of the object.
pub(crate) fn drop_switched_off(object: &mut Value, old: Option<&Value>) {
    for place in SPECS {
        let before = old.and_then(|old| at(old, place)).unwrap_or(&Value::Null);
        let Some(spec) = at_mut(object, place).filter(|spec| spec.is_object()) else { continue };
        if before.get("schedulingGroup").is_none_or(Value::is_null) {
            object::set_field(spec, "schedulingGroup", None);
        }
        if !all(before, &super::LISTS).any(|container| container.pointer("/lifecycle/stopSignal").is_some()) {
            super::LISTS.iter().for_each(|list| each(spec, list).for_each(drop_signal));
        }
        let gone: Vec<&str> = PROJECTIONS.into_iter().filter(|name| !projects(before, name)).collect();
        for volume in each(spec, "volumes").filter_map(|volume| volume.get_mut("projected")) {
            for source in each(volume, "sources").filter(|source| source.is_object()) {
                gone.iter().for_each(|name| object::set_field(source, name, None));
            }
        }
    }
}

/// Removes the stop signal, and a lifecycle that is empty then.
fn drop_signal(container: &mut Value) {
    let Some(lifecycle) = container.get_mut("lifecycle").and_then(Value::as_object_mut) else { return };
    if lifecycle.shift_remove("stopSignal").is_some() && lifecycle.is_empty() {
        object::set_field(container, "lifecycle", None);
    }
}

fn projects(spec: &Value, name: &str) -> bool {
    let volumes = all(spec, &["volumes"]).filter_map(|volume| volume.get("projected"));
    volumes
        .flat_map(|volume| all(volume, &["sources"]))
        .any(|source| source.get(name).is_some_and(|own| !own.is_null()))
}

fn all<'v>(value: &'v Value, lists: &'v [&str]) -> impl Iterator<Item = &'v Value> {
    lists.iter().filter_map(|list| value.get(*list)?.as_array()).flatten()
}

fn each<'v>(value: &'v mut Value, list: &str) -> impl Iterator<Item = &'v mut Value> {
    value.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten()
}
