//! Defines the strategy of Nodes. Read from pkg/apis/core/validation, pkg/apis/core/v1 (conversion, defaults) and pkg/registry/core/node of
//! Kubernetes 1.36.

use std::collections::HashSet;

use admit_apimachinery::field_error::FieldError;
use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::go;
use serde_json::{Value, json};

use crate::clock::Clock;
use crate::kinds::field::Field;
use crate::kinds::shared::network::{self, Network};
use crate::kinds::shared::{amount, inside, taints};
use crate::kinds::{Habit, Strategy};
use crate::object;

pub(super) const STRATEGY: Strategy = Strategy {
    kind: "Node",
    habits: &[Habit::StatusIsKept, Habit::ObjectAgain],
    default: Some(default),
    prepare_create: Some(prepare_create),
    prepare_update: Some(prepare_update),
    prepare_status: Some(prepare_status),
    validate: Some(validate),
    validate_update: Some(validate_update),
    validate_status: Some(validate_change),
    warnings: Some(warnings),
    ..Strategy::PLAIN
};

/// Sets defaults: `podCIDR` is the first of `podCIDRs`, and allocatable resources default to the capacity.
fn default(_: &str, node: &mut Value) {
    if let Some(spec) = node.get_mut("spec").filter(|spec| spec.is_object()) {
        let one = spec.get("podCIDR").and_then(Value::as_str).unwrap_or_default().to_owned();
        let first = spec.pointer("/podCIDRs/0").and_then(Value::as_str).map(str::to_owned);
        match first {
            first if !one.is_empty() && first.as_ref() != Some(&one) => {
                object::set_field(spec, "podCIDRs", Some(json!([one])));
            }
            Some(first) if one != first => object::set_field(spec, "podCIDR", Some(first.into())),
            _ => {}
        }
    }
    if let Some(status) = node.get_mut("status").filter(|status| status.is_object())
        && status.get("allocatable").is_none_or(Value::is_null)
        && let Some(capacity) = status.get("capacity").filter(|capacity| !capacity.is_null()).cloned()
    {
        object::set_field(status, "allocatable", Some(capacity));
    }
}

/// Drops fields of the removed dynamic kubelet configuration from new nodes.
fn prepare_create(node: &mut Value) {
    drop_unused(node, None, "/spec", "configSource");
    drop_unused(node, None, "/status", "config");
}

fn prepare_update(node: &mut Value, old: &Value) {
    drop_unused(node, Some(old), "/spec", "configSource");
}

fn prepare_status(node: &mut Value, old: &Value, _: &Clock) {
    drop_unused(node, Some(old), "/status", "config");
}

/// Removes a field, unless the old object has it.
fn drop_unused(node: &mut Value, old: Option<&Value>, half: &str, field: &str) {
    let before = old.and_then(|old| old.pointer(half)?.get(field));
    if before.is_none_or(Value::is_null)
        && let Some(half) = node.pointer_mut(half).filter(|half| half.is_object())
    {
        object::set_field(half, field, None);
    }
}

fn warnings(node: &Value, _: Option<&Value>) -> Vec<String> {
    let spec = Field::root(node).get("spec");
    let mut warnings = Vec::new();
    if spec.get("configSource").is_set() {
        warnings.push("spec.configSource: the feature is removed".to_owned());
    }
    if !spec.get("externalID").is_empty() {
        warnings.push("spec.externalID: this field is deprecated, and is unused by Kubernetes".to_owned());
    }
    warnings.extend(spec.get("podCIDRs").items().filter_map(|range| network::network_warning(&range)));
    warnings
}

fn validate(node: &Value, errors: &mut FieldErrors) {
    let root = Field::root(node);
    node_taints(&root, errors);
    declared_features(&root.get("status").get("declaredFeatures"), errors);
    resources(&root, errors);
    pod_ranges(&root.get("spec").get("podCIDRs"), errors);
}

/// Validates taints, whose errors upstream reports at another path.
fn node_taints(node: &Field<'_>, errors: &mut FieldErrors) {
    let list = node.get("spec").get("taints");
    taints::taints(&node.get("metadata").get("taints").with(list.value()), errors);
}

fn resources(node: &Field<'_>, errors: &mut FieldErrors) {
    for list in ["capacity", "allocatable"] {
        let amounts = node.get("status").get(list);
        for (resource, own) in amounts.entries() {
            amount::of_resource(resource, &amounts.member(resource).with(own.value()), errors);
        }
    }
}

/// Validates the address ranges for pods: one, or one of each family.
fn pod_ranges(ranges: &Field<'_>, errors: &mut FieldErrors) {
    let mut families = Vec::new();
    let mut unread = None;
    for (at, range) in ranges.items().enumerate() {
        network::legacy_network(&range, errors);
        match Network::parse(range.text()) {
            Some(network) => families.push(network.is_v4()),
            None => {
                let text = range.text();
                unread.get_or_insert_with(|| {
                    format!("invalid CIDR[{at}]: <nil> (invalid CIDR address: {text})")
                });
            }
        }
    }
    if ranges.len() < 2 {
        return;
    }
    let is_unread = unread.is_some();
    if let Some(why) = unread {
        let why = format!("invalid PodCIDRs. failed to check with dual stack with error:{why}");
        errors.add(|| FieldError::internal(ranges, why));
    }
    let of_both = !is_unread && families.contains(&true) && families.contains(&false);
    if !of_both || ranges.len() > 2 {
        errors.add(|| ranges.invalid("may specify no more than one CIDR for each IP family"));
    }
}

fn validate_update(node: &Value, old: &Value, errors: &mut FieldErrors) {
    validate(node, errors);
    validate_change(node, old, errors);
}

/// Validates updates, both of the specification and of the status.
fn validate_change(node: &Value, old: &Value, errors: &mut FieldErrors) {
    let (root, was) = (Field::root(node), Field::root(old).get("spec"));
    resources(&root, errors);
    declared_features(&root.get("status").get("declaredFeatures"), errors);
    addresses(&root.get("status").get("addresses"), errors);
    let spec = root.get("spec");
    let (ranges, before) = (spec.get("podCIDRs"), was.get("podCIDRs"));
    if !before.is_empty() && ranges.value() != before.value() {
        let why = "node updates may not change podCIDR except from \"\" to valid";
        errors.add(|| ranges.forbidden(why));
    }
    let (id, before) = (spec.get("providerID"), was.get("providerID"));
    if !before.is_empty() && id.text() != before.text() {
        errors.add(|| id.forbidden("node updates may not change providerID except from \"\" to valid"));
    }
    config_source(&spec.get("configSource"), errors);
    node_taints(&root, errors);
    let id = spec.get("externalID");
    if id.text() != was.get("externalID").text() {
        errors.add(|| id.forbidden("may not be updated"));
    }
}

/// Validates declared features: valid names in order, without duplicates.
fn declared_features(features: &Field<'_>, errors: &mut FieldErrors) {
    const LONGEST: usize = 253;
    let is_segment = |segment: &str| {
        segment.starts_with(|first: char| first.is_ascii_alphabetic())
            && segment.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    let is_name = |name: &str| {
        name.starts_with(|first: char| first.is_ascii_uppercase()) && name.split('/').all(is_segment)
    };
    let mut before: Option<&str> = None;
    for feature in features.items() {
        let name = feature.text();
        match before {
            Some(before) if before == name => errors.add(|| feature.duplicate()),
            Some(before) if before > name => {
                errors.add(|| feature.invalid("list must be sorted alphabetically"));
            }
            _ => {}
        }
        before = Some(name);
        let told = |why: &str| format!("invalid feature name {}: {why}", go::quote(name));
        if name.len() > LONGEST {
            errors.add(|| feature.invalid(told("must be no more than 253 characters")));
        } else if !is_name(name) {
            errors.add(|| {
                feature.invalid(told(
                    "must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature \
                     or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes",
                ))
            });
        }
    }
}

fn addresses(addresses: &Field<'_>, errors: &mut FieldErrors) {
    let mut known = HashSet::new();
    for address in addresses.items() {
        if !known.insert((address.get("type").text(), address.get("address").text())) {
            errors.add(|| {
                let mut error = address.duplicate();
                error.bad_value =
                    inside::told(&inside::shown("io.k8s.api.core.v1.NodeAddress", &address.as_sent()));
                error
            });
        }
    }
}

/// Validates the configuration source of the removed dynamic kubelet configuration.
fn config_source(source: &Field<'_>, errors: &mut FieldErrors) {
    let map = source.get("configMap");
    if source.is_set() && !map.is_set() {
        errors.add(|| source.invalid_as(Value::Null, "exactly one reference subfield must be non-nil"));
    }
    if !map.is_set() {
        return;
    }
    for name in ["uid", "resourceVersion"] {
        let field = map.get(name);
        if !field.is_empty() {
            errors.add(|| field.forbidden(format!("{name} must not be set in spec")));
        }
    }
    for name in ["namespace", "name", "kubeletConfigKey"] {
        let field = map.get(name);
        if field.is_empty() {
            errors.add(|| field.required(format!("{name} must be set in spec")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(check: impl Fn(&mut FieldErrors)) -> Vec<String> {
        let mut errors = FieldErrors::default();
        check(&mut errors);
        errors.into_iter().map(|error| error.to_string()).collect()
    }

    #[test]
    fn ranges_are_one_of_each_family() {
        let node = |ranges: Value| json!({"spec": {"podCIDRs": ranges}});
        for fine in [json!(["10.0.0.0/24"]), json!(["10.0.0.0/24", "fd00::/64"])] {
            assert_eq!(texts(|errors| validate(&node(fine.clone()), errors)), Vec::<String>::new());
        }
        let three = node(json!(["10.0.0.0/24", "fd00::/64", "fd01::/64"]));
        assert_eq!(
            texts(|errors| validate(&three, errors)),
            [
                "spec.podCIDRs: Invalid value: [\"10.0.0.0/24\",\"fd00::/64\",\"fd01::/64\"]: may specify no more than one \
              CIDR for each IP family"
            ]
        );
    }

    #[test]
    fn ranges_are_told_in_both_fields() {
        let mut node = json!({"spec": {"podCIDRs": ["10.0.0.0/24"]}});
        default("v1", &mut node);
        assert_eq!(node["spec"]["podCIDR"], "10.0.0.0/24");
        let mut node = json!({"spec": {"podCIDR": "10.0.1.0/24", "podCIDRs": ["10.0.0.0/24", "fd00::/64"]}});
        default("v1", &mut node);
        assert_eq!(node["spec"]["podCIDRs"], json!(["10.0.1.0/24"]));
    }

    #[test]
    fn taints_and_addresses_stand_there_once() {
        let node = json!({"status": {"addresses": [{"type": "a", "address": "b"}, {"type": "a", "address": "b"}],
            "capacity": {"pods": "1500m"}}, "spec": {"externalID": "x"}});
        assert_eq!(
            texts(|errors| validate_change(&node, &json!({}), errors)),
            [
                "status.capacity.pods: Invalid value: \"1500m\": must be an integer",
                "status.addresses[1]: Duplicate value: {\"Type\":\"a\",\"Address\":\"b\"}",
                "spec.externalID: Forbidden: may not be updated",
            ]
        );
    }
}
