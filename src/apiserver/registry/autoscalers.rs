//! Converts HorizontalPodAutoscalers between their two versions. They are stored as `autoscaling/v2`; `v1` has a
//! field for CPU utilization only, and shows everything else as JSON in annotations, so that nothing is lost in a
//! round trip.

use admit_apimachinery::pointer;
use serde_json::{Map, Value, json};

use crate::builtin::decode::decode;
use crate::builtin::{internal, tables};
use crate::object;
use crate::resources::ResourceInfo;

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
/// The `v2` paths that `v1` holds in annotations; [`well_formed`] checks their values.
const ANNOTATED: [(&str, &str, &str); 3] = [
    ("spec", "behavior", "autoscaling.alpha.kubernetes.io/behavior"),
    ("status", "currentMetrics", "autoscaling.alpha.kubernetes.io/current-metrics"),
    ("status", "conditions", "autoscaling.alpha.kubernetes.io/conditions"),
];

/// A field of a metric source: its path in `v2`, its name in `v1`, and whether `v1` always has a quantity there.
type Named = (&'static str, &'static str, bool);
/// The metric sources, each with its fields in the order of `v1`.
type Sources = [(&'static str, &'static [Named]); 5];

/// The fields of metric targets.
const TARGETS: Sources = [
    (
        "resource",
        &[
            ("name", "name", false),
            ("target/averageUtilization", "targetAverageUtilization", false),
            ("target/averageValue", "targetAverageValue", false),
        ],
    ),
    (
        "containerResource",
        &[
            ("name", "name", false),
            ("target/averageUtilization", "targetAverageUtilization", false),
            ("target/averageValue", "targetAverageValue", false),
            ("container", "container", false),
        ],
    ),
    (
        "pods",
        &[
            ("metric/name", "metricName", false),
            ("target/averageValue", "targetAverageValue", true),
            ("metric/selector", "selector", false),
        ],
    ),
    (
        "object",
        &[
            ("describedObject", "target", false),
            ("metric/name", "metricName", false),
            ("target/value", "targetValue", true),
            ("metric/selector", "selector", false),
            ("target/averageValue", "averageValue", false),
        ],
    ),
    (
        "external",
        &[
            ("metric/name", "metricName", false),
            ("metric/selector", "metricSelector", false),
            ("target/value", "targetValue", false),
            ("target/averageValue", "targetAverageValue", false),
        ],
    ),
];

/// The fields of current metrics.
const CURRENT: Sources = [
    (
        "resource",
        &[
            ("name", "name", false),
            ("current/averageUtilization", "currentAverageUtilization", false),
            ("current/averageValue", "currentAverageValue", true),
        ],
    ),
    (
        "containerResource",
        &[
            ("name", "name", false),
            ("current/averageUtilization", "currentAverageUtilization", false),
            ("current/averageValue", "currentAverageValue", true),
            ("container", "container", false),
        ],
    ),
    (
        "pods",
        &[
            ("metric/name", "metricName", false),
            ("current/averageValue", "currentAverageValue", true),
            ("metric/selector", "selector", false),
        ],
    ),
    (
        "object",
        &[
            ("describedObject", "target", false),
            ("metric/name", "metricName", false),
            ("current/value", "currentValue", true),
            ("metric/selector", "selector", false),
            ("current/averageValue", "averageValue", false),
        ],
    ),
    (
        "external",
        &[
            ("metric/name", "metricName", false),
            ("metric/selector", "metricSelector", false),
            ("current/value", "currentValue", true),
            ("current/averageValue", "currentAverageValue", false),
        ],
    ),
];

const BEHAVIOR: &str = "HorizontalPodAutoscalerBehavior";
/// The names in behaviors, written in the spelling of the internal Go type, and read in any case.
const BEHAVIOR_NAMES: [&str; 9] = [
    "scaleUp",
    "scaleDown",
    "stabilizationWindowSeconds",
    "selectPolicy",
    "policies",
    "tolerance",
    "type",
    "value",
    "periodSeconds",
];

/// Returns whether the resource is the older version, `v1`.
pub(super) fn is_older(info: &ResourceInfo) -> bool {
    info.builtin && info.group == "autoscaling" && info.version == "v1"
}

/// Converts a `v1` autoscaler to `v2` and back, as a server does: only readable annotations are left,
/// rewritten.
pub(super) fn reread(sent: &Value) -> Value {
    to_v1(&to_v2(sent))
}

/// Converts a `v2` autoscaler to `v1`.
pub(super) fn to_v1(stored: &Value) -> Value {
    let mut view = stored.clone();
    let mut annotations = Map::new();
    let metrics = stored.pointer("/spec/metrics").and_then(Value::as_array);
    let (load, others): (Vec<&Value>, Vec<&Value>) =
        metrics.into_iter().flatten().partition(|one| is_load(one));
    let percentage = load.first().and_then(|one| one.pointer("/resource/target/averageUtilization")).cloned();
    object::set_field(&mut view["spec"], "targetCPUUtilizationPercentage", percentage);
    object::set_field(&mut view["spec"], "metrics", None);
    let others: Vec<Value> = others.into_iter().map(|one| metric_to_v1(one, &TARGETS)).collect();
    if !others.is_empty() {
        annotations.insert(METRICS.to_owned(), Value::from(others).to_string().into());
    }
    let current = pointer::items(stored, "/status/currentMetrics").iter();
    let current = current.into_iter().rev().find_map(|one| {
        one.pointer("/resource/current/averageUtilization").filter(|_| one["resource"]["name"] == "cpu")
    });
    if view.get("status").is_some() {
        object::set_field(&mut view["status"], "currentCPUUtilizationPercentage", current.cloned());
    }
    for (half, field, annotation) in ANNOTATED {
        let value = stored.get(half).and_then(|half| half.get(field)).filter(|value| !value.is_null());
        if let Some(value) = value {
            annotations.insert(annotation.to_owned(), annotation_of(field, value).to_string().into());
        }
        if view.get(half).is_some() {
            object::set_field(&mut view[half], field, None);
        }
    }
    if !annotations.is_empty() {
        object::member_mut(object::meta_mut(&mut view), "annotations").append(&mut annotations);
    }
    view
}

/// Converts a `v1` autoscaler to `v2`.
pub(super) fn to_v2(sent: &Value) -> Value {
    let mut view = sent.clone();
    let mut metrics: Vec<Value> = annotated(&mut view, METRICS)
        .and_then(|text| serde_json::from_str::<Vec<Value>>(&text).ok())
        .map(|metrics| metrics.iter().map(|one| metric_to_v2(one, &TARGETS)).collect())
        .filter(|metrics: &Vec<Value>| metrics.iter().all(|metric| is_of("MetricSpec", metric)))
        .unwrap_or_default();
    let percentage = sent.pointer("/spec/targetCPUUtilizationPercentage").filter(|value| !value.is_null());
    if let Some(percentage) = percentage {
        let target = json!({"type": "Utilization", "averageUtilization": percentage});
        metrics.push(json!({"type": "Resource", "resource": {"name": "cpu", "target": target}}));
    }
    object::set_field(&mut view["spec"], "targetCPUUtilizationPercentage", None);
    object::set_field(&mut view["spec"], "metrics", (!metrics.is_empty()).then(|| metrics.into()));
    let load = sent.pointer("/status/currentCPUUtilizationPercentage").filter(|value| !value.is_null());
    if let Some(load) = load {
        let current = json!({"averageUtilization": load});
        let metric = json!({"type": "Resource", "resource": {"name": "cpu", "current": current}});
        object::set_field(&mut view["status"], "currentMetrics", Some(json!([metric])));
    }
    for (half, field, annotation) in ANNOTATED {
        let value = annotated(&mut view, annotation).and_then(|text| serde_json::from_str(&text).ok());
        let value = value.map(|value| field_of(field, value));
        if let Some(value) = value.filter(|value| well_formed(field, value)) {
            object::set_field(&mut view[half], field, Some(value));
        }
    }
    if view.get("status").is_some() {
        object::set_field(&mut view["status"], "currentCPUUtilizationPercentage", None);
    }
    view
}

/// Returns the annotation's value for a field of `v2`.
fn annotation_of(field: &str, value: &Value) -> Value {
    match (field, value) {
        ("currentMetrics", Value::Array(metrics)) => {
            metrics.iter().map(|one| metric_to_v1(one, &CURRENT)).collect()
        }
        ("behavior", value) => {
            let tables = tables();
            let id = tables.by_openapi_name(&format!("io.k8s.api.autoscaling.v2.{BEHAVIOR}"));
            id.map(|id| internal(tables, id, value)).unwrap_or_default()
        }
        (_, value) => value.clone(),
    }
}

/// Returns the field of `v2` from an annotation's value.
fn field_of(field: &str, value: Value) -> Value {
    match (field, value) {
        ("currentMetrics", Value::Array(metrics)) => {
            metrics.iter().map(|one| metric_to_v2(one, &CURRENT)).collect()
        }
        ("behavior", value) => outside(value),
        (_, value) => value,
    }
}

/// Returns a behavior with the names of `v2`, without nulls.
fn outside(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(outside).collect(),
        Value::Object(members) => {
            let named = members.into_iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| {
                let known = BEHAVIOR_NAMES.iter().find(|known| known.eq_ignore_ascii_case(&name));
                (known.map_or(name, |known| (*known).to_owned()), outside(value))
            });
            Value::Object(named.collect())
        }
        other => other,
    }
}

/// Returns whether an annotation's value fits the field; otherwise it is dropped.
fn well_formed(field: &str, value: &Value) -> bool {
    let all = |of: &str| value.as_array().is_some_and(|items| items.iter().all(|item| is_of(of, item)));
    match field {
        "currentMetrics" => all("MetricStatus"),
        "conditions" => all("HorizontalPodAutoscalerCondition"),
        _ => is_of(BEHAVIOR, value) && *value != json!({}),
    }
}

/// Returns whether the value can be decoded as that type of `autoscaling/v2`.
fn is_of(name: &str, value: &Value) -> bool {
    let tables = tables();
    let id = tables.by_openapi_name(&format!("io.k8s.api.autoscaling.v2.{name}"));
    value.is_object() && id.is_some_and(|id| decode(tables, id, value.clone()).is_ok())
}

/// Removes an annotation and returns its value.
fn annotated(object: &mut Value, name: &str) -> Option<String> {
    let annotations = object::known_meta_mut(object, "annotations")?.as_object_mut()?;
    let text = annotations.shift_remove(name)?.as_str()?.to_owned();
    if annotations.is_empty() {
        object::set_meta(object, "annotations", None);
    }
    Some(text)
}

/// Returns whether a metric is the CPU utilization, for which `v1` has a field.
fn is_load(metric: &Value) -> bool {
    metric.pointer("/resource/name").is_some_and(|name| name == "cpu")
        && metric.pointer("/resource/target/averageUtilization").is_some()
}

fn metric_to_v1(metric: &Value, sources: &Sources) -> Value {
    converted(metric, sources, |_, source, fields| {
        let mut out = Map::new();
        for (path, name, always) in fields {
            let value = source.pointer(&format!("/{path}")).filter(|value| !value.is_null()).cloned();
            if let Some(value) = value.or_else(|| always.then(|| "0".into())) {
                out.insert((*name).to_owned(), value);
            }
        }
        Value::Object(out)
    })
}

fn metric_to_v2(metric: &Value, sources: &Sources) -> Value {
    converted(metric, sources, |of, source, fields| {
        let mut out = json!({});
        for (path, name, always) in fields {
            let value = source.get(*name).filter(|value| !value.is_null()).cloned();
            let Some(value) = value.or_else(|| always.then(|| "0".into())) else { continue };
            match path.split_once('/') {
                Some((part, field)) => out[part][field] = value,
                None => out[*path] = value,
            }
        }
        if sources == &TARGETS {
            aim(of, &mut out["target"]);
        }
        out
    })
}

/// Sets the type of a target, which `v1` lacks. Beside an average, `v1` has a zero value if there is none.
fn aim(of: &str, target: &mut Value) {
    let has = |field: &str| target.get(field).is_some();
    let kind = match of {
        "resource" | "containerResource" if has("averageUtilization") => "Utilization",
        "object" if !has("averageValue") => "Value",
        "external" if has("value") => "Value",
        _ => "AverageValue",
    };
    let is_zero = |value: &Value| value.as_str().is_some_and(|text| text == "0") || *value == 0;
    if of == "object" && kind == "AverageValue" && target.get("value").is_some_and(is_zero) {
        object::set_field(target, "value", None);
    }
    target["type"] = kind.into();
}

/// Converts a metric: `source` rebuilds the member beside its type from its name, its value and its fields.
fn converted(metric: &Value, sources: &Sources, source: impl Fn(&str, &Value, &[Named]) -> Value) -> Value {
    let Value::Object(members) = metric else { return metric.clone() };
    let fields =
        |of: &str| sources.iter().find(|(name, _)| *name == of).map_or(&[][..], |(_, fields)| fields);
    let made = members.iter().map(|(name, value)| match value {
        Value::Object(_) => (name.clone(), source(name, value, fields(name))),
        _ => (name.clone(), value.clone()),
    });
    Value::Object(made.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_on_the_way_to_v1_and_back() {
        let stored = json!({
            "metadata": {"name": "a"},
            "spec": {
                "maxReplicas": 3, "behavior": {"scaleUp": {"stabilizationWindowSeconds": 1}},
                "metrics": [
                    {"type": "Resource", "resource": {"name": "memory", "target": {"averageValue": "1Mi", "type": "AverageValue"}}},
                    {"type": "External", "external": {"metric": {"name": "q", "selector": {"matchLabels": {"a": "b"}}},
                        "target": {"value": "7", "type": "Value"}}},
                    {"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 50, "type": "Utilization"}}}
                ]
            },
            "status": {"desiredReplicas": 1, "conditions": [{"type": "AbleToScale", "status": "True"}]}
        });
        let view = to_v1(&stored);
        assert_eq!(view["spec"], json!({"maxReplicas": 3, "targetCPUUtilizationPercentage": 50}));
        assert_eq!(
            view["metadata"]["annotations"][METRICS],
            "[{\"type\":\"Resource\",\"resource\":{\"name\":\"memory\",\"targetAverageValue\":\"1Mi\"}},{\"type\":\"External\",\
             \"external\":{\"metricName\":\"q\",\"metricSelector\":{\"matchLabels\":{\"a\":\"b\"}},\"targetValue\":\"7\"}}]"
        );
        assert_eq!(to_v2(&view), stored);
    }
}
