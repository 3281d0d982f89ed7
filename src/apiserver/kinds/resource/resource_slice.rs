//! ResourceSlices: the devices of a pool, or a part of them. Read from pkg/apis/resource/validation and
//! pkg/registry/resource/resourceslice of Kubernetes 1.36.

use std::collections::HashMap;

use admit_apimachinery::findings::FieldErrors;
use serde_json::{Map, Value};

use super::device::{counters, device};
use super::texts::{distinct, pool_name};
use crate::clock::Clock;
use crate::kinds::field::Field;
use crate::kinds::shared::defaults::{each, set_absent};
use crate::kinds::shared::inside;
use crate::kinds::shared::node_selector::node_selector;
use crate::kinds::shared::texts::{driver_name, subdomain};
use crate::kinds::{Habit, Strategy};
use crate::object;

pub(super) const STRATEGY: Strategy = Strategy {
    kind: "ResourceSlice",
    habits: &[Habit::AnswersDeleted, Habit::PlacedByFieldLabels],
    stamp: Some(|slice, request| stamp(slice, request.clock)),
    stamp_change: Some(stamp),
    prepare_create: Some(drop_switched_off),
    prepare_update: Some(|slice, _| drop_switched_off(slice)),
    validate: Some(|slice, errors| specification(slice, None, errors)),
    validate_update: Some(|slice, old, errors| specification(slice, Some(old), errors)),
    warnings: Some(warnings),
    ..Strategy::PLAIN
};

const MOST_DEVICES: usize = 128;
/// With taints or counters.
const MOST_COMPLEX_DEVICES: usize = 64;
const MOST_COUNTER_SETS: usize = 8;
const ONE: &str =
    "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";

fn devices_mut(slice: &mut Value) -> impl Iterator<Item = &mut Value> {
    slice.get_mut("spec").into_iter().flat_map(|spec| each(spec, "devices"))
}

/// A taint tells since when it is there.
fn stamp(slice: &mut Value, clock: &Clock) {
    for device in devices_mut(slice) {
        for taint in each(device, "taints").filter(|taint| taint.is_object()) {
            set_absent(taint, &[("timeAdded", clock.stamp().into())]);
        }
    }
}

/// Attributes are no lists, and devices hold nothing of what nodes have, which is how it is unless switched on.
fn drop_switched_off(slice: &mut Value) {
    for device in devices_mut(slice).filter(|device| device.is_object()) {
        object::set_field(device, "nodeAllocatableResourceMappings", None);
        let attributes = device.get_mut("attributes").and_then(Value::as_object_mut);
        for attribute in attributes.into_iter().flat_map(Map::values_mut).filter(|own| own.is_object()) {
            for list in ["bools", "ints", "strings", "versions"] {
                object::set_field(attribute, list, None);
            }
        }
    }
}

fn specification(slice: &Value, old: Option<&Value>, errors: &mut FieldErrors) {
    let spec = Field::root(slice).get("spec");
    let was = old.map(|old| Field::root(old).get("spec"));
    driver_name(&spec.get("driver"), errors);
    pool(&spec.get("pool"), errors);
    if let Some(was) = &was {
        spec.get("pool").get("name").immutable(&was.get("pool").get("name"), errors);
        spec.get("driver").immutable(&was.get("driver"), errors);
        spec.get("nodeName").immutable_or_null(&was.get("nodeName"), errors);
    }
    nodes(&spec, errors);
    let (devices, sets) = (spec.get("devices"), spec.get("sharedCounters"));
    // Lists that are empty count where they were sent.
    if devices.as_sent().is_array() && sets.as_sent().is_array() {
        errors.add(|| spec.invalid_as("", "only one of `sharedCounters` or `devices` is allowed"));
    }
    let is_complex =
        |own: Field<'_>| !own.get("taints").is_empty() || !own.get("consumesCounters").is_empty();
    let most = if devices.items().any(is_complex) { MOST_COMPLEX_DEVICES } else { MOST_DEVICES };
    let before: HashMap<&str, Field<'_>> = was
        .iter()
        .flat_map(|was| was.get("devices").items())
        .map(|own| (own.get("name").text(), own))
        .collect();
    let own_nodes = spec.get("perDeviceNodeSelection").flag();
    let name = |own: &Field<'_>| own.get("name").text().to_owned();
    let check = |own: &Field<'_>, errors: &mut FieldErrors| {
        device(own, before.get(own.get("name").text()), own_nodes, errors);
    };
    distinct(&devices, Some(most), name, check, errors);
    let set = |own: &Field<'_>, errors: &mut FieldErrors| counters(own, "name", 32, errors);
    distinct(&sets, Some(MOST_COUNTER_SETS), name, set, errors);
}

fn pool(pool: &Field<'_>, errors: &mut FieldErrors) {
    let (count, generation) = (pool.get("resourceSliceCount"), pool.get("generation"));
    pool_name(&pool.get("name"), errors);
    let number = count.integer().unwrap_or_default();
    if number <= 0 {
        errors.add(|| count.invalid_as(number, "must be greater than zero"));
    }
    if generation.integer().is_some_and(|number| number < 0) {
        errors.add(|| generation.invalid("must be greater than or equal to zero"));
    }
}

/// Which nodes reach the devices: one way to say it.
fn nodes(spec: &Field<'_>, errors: &mut FieldErrors) {
    let mut ways = Vec::new();
    let (name, selector) = (spec.get("nodeName"), spec.get("nodeSelector"));
    if name.is_set() && name.is_empty() {
        errors.add(|| name.invalid("must be either unset or set to a non-empty string"));
    } else if name.is_set() {
        ways.push("`nodeName`");
        subdomain(&name, errors);
    }
    if selector.is_set() {
        ways.push("`nodeSelector`");
        node_selector(&selector, errors);
        let terms = selector.get("nodeSelectorTerms");
        if terms.len() != 1 {
            let sent = selector.as_sent();
            let shown = inside::shown("io.k8s.api.core.v1.NodeSelector", &sent);
            let shown = inside::told(&shown["NodeSelectorTerms"]);
            errors.add(|| terms.invalid_as(shown, "must have exactly one node selector term"));
        }
    }
    for (flag, shown) in [("allNodes", "`allNodes`"), ("perDeviceNodeSelection", "`perDeviceNodeSelection`")]
    {
        let field = spec.get(flag);
        if field.flag() {
            ways.push(shown);
        } else if field.is_set() {
            errors.add(|| field.invalid("must be either unset or set to true"));
        }
    }
    match ways.len() {
        0 => errors.add(|| spec.required(ONE)),
        1 => {}
        _ => errors.add(|| {
            let shown = format!("{{{}}}", ways.join(", "));
            spec.invalid_as(shown.as_str(), format!("{ONE}, but multiple fields are set"))
        }),
    }
}

/// Names of drivers are compared as they are written.
fn warnings(slice: &Value, old: Option<&Value>) -> Vec<String> {
    let driver = Field::root(slice).get("spec").get("driver");
    let was = old.map(|old| Field::root(old).get("spec").get("driver").text().to_owned());
    let is_new = was.as_deref() != Some(driver.text());
    let is_upper = driver.text().chars().any(char::is_uppercase);
    let why = || {
        format!(
            "{driver}: driver names should be lowercase; \"{}\" contains uppercase characters",
            driver.text()
        )
    };
    (is_new && is_upper).then(why).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nodes_are_told_in_one_way_and_devices_are_not_too_many() {
        let devices: Vec<Value> = (0..65)
            .map(|at| json!({"name": format!("d{at}"), "taints": [{"key": "k", "effect": "NoSchedule"}]}))
            .collect();
        let slice = json!({"spec": {"driver": "d", "pool": {"name": "p", "resourceSliceCount": 1},
            "allNodes": true, "nodeName": "n", "perDeviceNodeSelection": false, "devices": devices}});
        let mut errors = FieldErrors::default();
        specification(&slice, None, &mut errors);
        let texts: Vec<String> = errors.into_iter().map(|error| error.to_string()).collect();
        assert_eq!(
            texts,
            [
                "spec.perDeviceNodeSelection: Invalid value: false: must be either unset or set to true"
                    .to_owned(),
                format!(
                    "spec: Invalid value: \"{{`nodeName`, `allNodes`}}\": {ONE}, but multiple fields are set"
                ),
                "spec.devices: Too many: 65: must have at most 64 items".to_owned(),
            ]
        );
    }
}
