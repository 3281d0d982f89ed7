//! The metrics that an autoscaler goes by.

use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::names;
use admit_apimachinery::quantity::Quantity;

use super::target::{Version, reference};
use crate::kinds::field::Field;
use crate::kinds::shared::resource_names;

/// The type of a metric, the member that tells of its source, and what is wrong with that. In the order in which
/// Kubernetes looks for them.
type Source = (&'static str, &'static str, fn(&Field<'_>, &mut FieldErrors));

const SOURCES: [Source; 5] = [
    ("Object", "object", object),
    ("External", "external", external),
    ("Pods", "pods", pods),
    ("Resource", "resource", resource),
    ("ContainerResource", "containerResource", container_resource),
];
const TYPES: [&str; 5] = ["ContainerResource", "External", "Object", "Pods", "Resource"];

/// What is wrong with a list of metrics; `to_none` says that there may be no replica at times.
pub(super) fn validate(metrics: &Field<'_>, to_none: bool, errors: &mut FieldErrors) {
    let mut is_seen_from_outside = false;
    for metric in metrics.items() {
        self::metric(&metric, errors);
        is_seen_from_outside |= ["Object", "External"].contains(&metric.get("type").text());
    }
    if to_none && !is_seen_from_outside {
        errors.add(|| {
            metrics.forbidden(
                "must specify at least one Object or External metric to support scaling to zero replicas",
            )
        });
    }
}

fn metric(metric: &Field<'_>, errors: &mut FieldErrors) {
    let kind = metric.get("type");
    if kind.is_empty() {
        errors.add(|| kind.required("must specify a metric source type"));
    }
    let unknown = !TYPES.contains(&kind.text());
    if unknown {
        errors.add(|| kind.not_supported(&TYPES));
    }
    let given: Vec<&Source> = SOURCES.iter().filter(|(_, member, _)| metric.get(member).is_set()).collect();
    if let Some((_, member, validate)) = given.first() {
        validate(&metric.get(member), errors);
    }
    let expected = SOURCES.iter().find(|(name, ..)| *name == kind.text()).map(|(_, member, _)| *member);
    match expected.map(|member| metric.get(member)) {
        Some(source) if !source.is_set() => {
            errors.add(|| source.required("must populate information for the given metric source"));
        }
        Some(_) => {}
        // It is told a second time.
        None => errors.add(|| kind.not_supported(&TYPES)),
    }
    for (_, member, _) in given.iter().filter(|(_, member, _)| given.len() > 1 && Some(*member) != expected) {
        errors.add(|| metric.get(member).forbidden("must populate the given metric source only"));
    }
}

fn object(source: &Field<'_>, errors: &mut FieldErrors) {
    reference(&source.get("describedObject"), Version::Formed, errors);
    identifier(&source.get("metric"), errors);
    let target = source.get("target");
    self::target(&target, errors);
    if !target.get("value").is_set() && !target.get("averageValue").is_set() {
        let average = target.get("averageValue");
        errors.add(|| average.required("must set either a target value or averageValue"));
    }
}

fn external(source: &Field<'_>, errors: &mut FieldErrors) {
    identifier(&source.get("metric"), errors);
    let target = source.get("target");
    self::target(&target, errors);
    match (target.get("value").is_set(), target.get("averageValue").is_set()) {
        (false, false) => errors.add(|| {
            let why = "must set either a target value for metric or a per-pod target";
            target.get("averageValue").required(why)
        }),
        (true, true) => errors.add(|| {
            let why = "may not set both a target value for metric and a per-pod target";
            target.get("value").forbidden(why)
        }),
        _ => {}
    }
}

fn pods(source: &Field<'_>, errors: &mut FieldErrors) {
    identifier(&source.get("metric"), errors);
    let target = source.get("target");
    self::target(&target, errors);
    let average = target.get("averageValue");
    if !average.is_set() {
        errors.add(|| average.required("must specify a positive target averageValue"));
    }
}

fn resource(source: &Field<'_>, errors: &mut FieldErrors) {
    let name = source.get("name");
    if name.is_empty() {
        errors.add(|| name.required("must specify a resource name"));
    }
    resource_target(&source.get("target"), errors);
}

fn container_resource(source: &Field<'_>, errors: &mut FieldErrors) {
    let (name, container) = (source.get("name"), source.get("container"));
    if name.is_empty() {
        errors.add(|| name.required("must specify a resource name"));
    } else {
        resource_names::of_container(name.text(), &name, errors);
    }
    if container.is_empty() {
        errors.add(|| container.required("must specify a container"));
    } else {
        container.problems(names::dns1123_label(container.text()), errors);
    }
    resource_target(&source.get("target"), errors);
}

fn resource_target(target: &Field<'_>, errors: &mut FieldErrors) {
    self::target(target, errors);
    let (share, amount) = (target.get("averageUtilization"), target.get("averageValue"));
    match (share.is_set(), amount.is_set()) {
        (false, false) => {
            errors.add(|| share.required("must set either a target raw value or a target utilization"))
        }
        (true, true) => {
            errors.add(|| amount.forbidden("may not set both a target raw value and a target utilization"))
        }
        _ => {}
    }
}

fn identifier(metric: &Field<'_>, errors: &mut FieldErrors) {
    let name = metric.get("name");
    if name.is_empty() {
        errors.add(|| name.required("must specify a metric name"));
    } else {
        name.problems(names::path_segment(name.text(), false), errors);
    }
}

fn target(target: &Field<'_>, errors: &mut FieldErrors) {
    let kind = target.get("type");
    if kind.is_empty() {
        errors.add(|| kind.required("must specify a metric target type"));
    }
    if !["Utilization", "Value", "AverageValue"].contains(&kind.text()) {
        errors.add(|| kind.invalid("must be either Utilization, Value, or AverageValue"));
    }
    for amount in ["value", "averageValue"] {
        let amount = target.get(amount);
        let is_positive = || Quantity::parse(amount.text()).is_ok_and(|amount| amount.sign().is_gt());
        if amount.is_set() && !is_positive() {
            errors.add(|| amount.invalid("must be positive"));
        }
    }
    let share = target.get("averageUtilization");
    if share.integer().is_some_and(|share| share < 1) {
        errors.add(|| share.invalid("must be greater than 0"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn told(metrics: &Value) -> Vec<String> {
        let mut errors = FieldErrors::default();
        validate(&Field::root(metrics), false, &mut errors);
        errors.into_iter().map(|error| error.to_string()).collect()
    }

    #[test]
    fn a_metric_has_one_source_with_one_target() {
        let target = json!({"type": "AverageValue", "averageValue": "1", "value": "2"});
        assert_eq!(
            told(&json!([{"type": "External", "external": {"metric": {"name": "m"}, "target": target},
                "pods": {"metric": {"name": "m"}, "target": {}}}])),
            [
                "[0].external.target.value: Forbidden: may not set both a target value for metric and a per-pod target",
                "[0].pods: Forbidden: must populate the given metric source only",
            ]
        );
        let target = json!({"type": "Utilization", "averageValue": "-1", "averageUtilization": 3});
        assert_eq!(
            told(&json!([{"type": "ContainerResource",
                "containerResource": {"name": "disk", "target": target}}])),
            [
                "[0].containerResource.name: Invalid value: \"disk\": must be a standard resource type or fully qualified",
                "[0].containerResource.name: Invalid value: \"disk\": must be a standard resource for containers",
                "[0].containerResource.container: Required value: must specify a container",
                "[0].containerResource.target.averageValue: Invalid value: \"-1\": must be positive",
                "[0].containerResource.target.averageValue: Forbidden: may not set both a target raw value and a target \
                 utilization",
            ]
        );
    }
}
