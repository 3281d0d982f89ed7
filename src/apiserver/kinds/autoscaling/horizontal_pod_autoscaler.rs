//! HorizontalPodAutoscaler, in the form of `v2`, which objects of `v1` are converted to.

use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::quantity::Quantity;
use serde_json::{Map, Value, json};

use super::metrics;
use super::target::{Version, reference};
use crate::kinds::Strategy;
use crate::kinds::field::Field;
use crate::kinds::shared::defaults::set_absent;
use crate::kinds::shared::replicas;
use crate::object;

pub(super) const STRATEGY: Strategy = Strategy {
    kind: "HorizontalPodAutoscaler",
    default: Some(default),
    prepare_create: Some(|autoscaler| keep_annotations(autoscaler, OF_STATUS, None)),
    prepare_update: Some(|autoscaler, old| keep_annotations(autoscaler, OF_STATUS, Some(old))),
    prepare_status: Some(|autoscaler, old, _| keep_annotations(autoscaler, OF_SPEC, Some(old))),
    validate: Some(validate),
    validate_update: Some(validate_update),
    validate_status: Some(validate_status),
    ..Strategy::PLAIN
};

const LONGEST_PERIOD: i64 = 1800;
const LONGEST_WINDOW: i64 = 3600;

/// The load that one without metrics looks at, in percent.
const LOAD: i64 = 80;
/// Where the older version has the metrics that it has no fields for, as JSON.
const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";

/// Without metrics the load is one.
fn default(version: &str, autoscaler: &mut Value) {
    let is_empty = |metrics: Option<&Value>| metrics.and_then(Value::as_array).is_none_or(Vec::is_empty);
    if version == "v2" {
        drop_annotations(autoscaler);
        if is_empty(autoscaler.pointer("/spec/metrics")) {
            let target = json!({"type": "Utilization", "averageUtilization": LOAD});
            let load = json!([{"type": "Resource", "resource": {"name": "cpu", "target": target}}]);
            object::set_field(&mut autoscaler["spec"], "metrics", Some(load));
        }
        return;
    }
    let (_, text) = object::meta_map(autoscaler, "annotations").find(|(name, _)| *name == METRICS).unzip();
    // What is no list of metrics is none.
    let others = text.and_then(|text| serde_json::from_str::<Vec<Map<String, Value>>>(text).ok());
    if others.is_none_or(|others| others.is_empty()) {
        set_absent(&mut autoscaler["spec"], &[("targetCPUUtilizationPercentage", json!(LOAD))]);
    }
}

/// The annotations of the older version that are part of the specification, and of the status.
const OF_SPEC: [&str; 2] =
    ["autoscaling.alpha.kubernetes.io/metrics", "autoscaling.alpha.kubernetes.io/behavior"];
const OF_STATUS: [&str; 2] =
    ["autoscaling.alpha.kubernetes.io/current-metrics", "autoscaling.alpha.kubernetes.io/conditions"];

/// Makes these annotations of the older version those of the old object. The newer version has none of them.
fn keep_annotations(autoscaler: &mut Value, kept: [&str; 2], old: Option<&Value>) {
    let sent = object::known_meta_mut(autoscaler, "annotations").and_then(Value::as_object_mut);
    let mut annotations = sent.map(std::mem::take).unwrap_or_default();
    for name in kept {
        annotations.shift_remove(name);
        let before = old.and_then(|old| object::meta_map(old, "annotations").find(|(key, _)| *key == name));
        annotations.extend(before.map(|(_, text)| (name.to_owned(), text.into())));
    }
    object::set_meta(autoscaler, "annotations", (!annotations.is_empty()).then(|| annotations.into()));
}

/// What the older version has in annotations, the newer one has in fields.
fn drop_annotations(autoscaler: &mut Value) {
    let Some(annotations) = object::known_meta_mut(autoscaler, "annotations").and_then(Value::as_object_mut)
    else {
        return;
    };
    let before = annotations.len();
    for name in ["metrics", "behavior", "current-metrics", "conditions"] {
        annotations.shift_remove(&format!("autoscaling.alpha.kubernetes.io/{name}"));
    }
    if annotations.is_empty() && before > 0 {
        object::set_meta(autoscaler, "annotations", None);
    }
}

fn validate(object: &Value, errors: &mut FieldErrors) {
    spec(object, None, errors);
}

fn validate_update(object: &Value, old: &Value, errors: &mut FieldErrors) {
    spec(object, Some(old), errors);
}

fn spec(object: &Value, old: Option<&Value>, errors: &mut FieldErrors) {
    let spec = Field::root(object).get("spec");
    let before = old.map(|old| Field::root(old).get("spec"));
    let (least, most) = (spec.get("minReplicas"), spec.get("maxReplicas"));
    // What was scaled to nothing before may be so again.
    let was_none = before.as_ref().is_some_and(|spec| spec.get("minReplicas").integer() == Some(0));
    let bound = i64::from(!was_none);
    if least.integer().is_some_and(|least| least < bound) {
        errors.add(|| least.invalid(format!("must be greater than or equal to {bound}")));
    }
    match most.integer().unwrap_or_default() {
        0 => errors.add(|| most.required("must be set and greater than 0")),
        ..0 => errors.add(|| most.invalid("must be greater than or equal to 1")),
        1.. => {}
    }
    let own = most.integer().unwrap_or_default();
    if least.integer().is_some_and(|least| own < least) {
        errors.add(|| most.invalid_as(own, "must be greater than or equal to `minReplicas`"));
    }
    let target = spec.get("scaleTargetRef");
    reference(&target, version_of(&target, before.as_ref()), errors);
    metrics::validate(&spec.get("metrics"), least.integer() == Some(0), errors);
    for direction in ["scaleUp", "scaleDown"] {
        rules(&spec.get("behavior").get(direction), errors);
    }
}

/// Only ReplicationControllers are of the core group; nobody looks at what stays.
fn version_of(target: &Field<'_>, before: Option<&Field<'_>>) -> Version {
    let stays = before.is_some_and(|before| {
        let old = before.get("scaleTargetRef");
        ["apiVersion", "kind"].iter().all(|&field| old.get(field).text() == target.get(field).text())
    });
    match target.get("kind").text() {
        _ if stays => Version::Any,
        "ReplicationController" => Version::Formed,
        _ => Version::OfGroup,
    }
}

/// How fast is scaled in one direction, if that is said.
fn rules(rules: &Field<'_>, errors: &mut FieldErrors) {
    if !rules.is_set() {
        return;
    }
    let window = rules.get("stabilizationWindowSeconds");
    match window.integer().unwrap_or_default() {
        ..0 => errors.add(|| window.invalid("must be greater than or equal to zero")),
        seconds if seconds > LONGEST_WINDOW => {
            errors.add(|| window.invalid(format!("must be less than or equal to {LONGEST_WINDOW}")));
        }
        _ => {}
    }
    let select = rules.get("selectPolicy");
    let known = ["Disabled", "Max", "Min"];
    if select.is_set() && !known.contains(&select.text()) {
        errors.add(|| select.not_supported(&known));
    }
    let policies = rules.get("policies");
    if policies.is_empty() {
        errors.add(|| policies.required("must specify at least one Policy"));
    }
    for policy in policies.items() {
        self::policy(&policy, errors);
    }
    let tolerance = rules.get("tolerance");
    if Quantity::parse(tolerance.text()).is_ok_and(|tolerance| tolerance.sign().is_lt()) {
        errors.add(|| tolerance.invalid("must be greater than or equal to 0"));
    }
}

fn policy(policy: &Field<'_>, errors: &mut FieldErrors) {
    let kind = policy.get("type");
    let known = ["Percent", "Pods"];
    if !known.contains(&kind.text()) {
        errors.add(|| kind.not_supported(&known));
    }
    for part in ["value", "periodSeconds"] {
        let part = policy.get(part);
        let number = part.integer().unwrap_or_default();
        if number <= 0 {
            errors.add(|| part.invalid_as(number, "must be greater than zero"));
        }
    }
    let period = policy.get("periodSeconds");
    if period.integer().is_some_and(|seconds| seconds > LONGEST_PERIOD) {
        errors.add(|| period.invalid(format!("must be less than or equal to {LONGEST_PERIOD}")));
    }
}

fn validate_status(object: &Value, _: &Value, errors: &mut FieldErrors) {
    let status = Field::root(object).get("status");
    replicas::not_negative(&status, &["currentReplicas", "desiredReplicas"], errors);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::told;

    fn scaler(change: fn(&mut Value)) -> Value {
        let mut object = json!({"spec": {"minReplicas": 1, "maxReplicas": 2, "metrics": [],
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}}});
        change(&mut object["spec"]);
        object
    }

    #[test]
    fn only_controllers_of_the_core_group_are_scaled_by_its_version() {
        let core =
            |spec: &mut Value| spec["scaleTargetRef"] = json!({"apiVersion": "v1", "kind": "A", "name": "a"});
        let object = scaler(core);
        let refused =
            "spec.scaleTargetRef.apiVersion: Invalid value: \"v1\": apiVersion must specify API group";
        assert_eq!(told(&STRATEGY, &object, None), [refused]);
        assert_eq!(told(&STRATEGY, &object, Some(&object)), Vec::<String>::new());
        let controller = scaler(|spec| {
            spec["scaleTargetRef"] =
                json!({"apiVersion": "v1", "kind": "ReplicationController", "name": "a"});
        });
        assert_eq!(told(&STRATEGY, &controller, None), Vec::<String>::new());
    }

    #[test]
    fn nothing_may_be_scaled_to_nothing_that_was_not() {
        let none = scaler(|spec| {
            spec["minReplicas"] = json!(0);
            spec["metrics"] = json!([{"type": "External", "external": {"metric": {"name": "m"},
                "target": {"type": "Value", "value": "1"}}}]);
        });
        assert_eq!(
            told(&STRATEGY, &none, None),
            ["spec.minReplicas: Invalid value: 0: must be greater than or equal to 1"]
        );
        assert_eq!(told(&STRATEGY, &none, Some(&none)), Vec::<String>::new());
    }

    #[test]
    fn rules_of_scaling_are_bounded() {
        let object = scaler(|spec| {
            spec["behavior"] = json!({"scaleUp": {"stabilizationWindowSeconds": -1, "tolerance": "-0.1",
                "policies": [{"type": "Pods", "value": 1, "periodSeconds": 1801}]}});
        });
        assert_eq!(
            told(&STRATEGY, &object, None),
            [
                "spec.behavior.scaleUp.stabilizationWindowSeconds: Invalid value: -1: must be greater than or equal to \
                 zero",
                "spec.behavior.scaleUp.policies[0].periodSeconds: Invalid value: 1801: must be less than or equal to 1800",
                "spec.behavior.scaleUp.tolerance: Invalid value: \"-0.1\": must be greater than or equal to 0",
            ]
        );
    }
}
