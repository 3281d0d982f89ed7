//! Converts HorizontalPodAutoscalers between their two versions. They are stored as `autoscaling/v2`; `v1` has a
//! field for CPU utilization only, and shows everything else as JSON in annotations, so that nothing is lost in a
//! round trip.

use admit_apimachinery::pointer;
use serde_json::{Map, Value, json};

use crate::builtin::decode::decode;
use crate::builtin::tables;
use crate::object;

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
/// What a `v2` object has at a path, and `v1` in an annotation; what it is made of is in [`well_formed`].
const ANNOTATED: [(&str, &str, &str); 3] = [
    ("spec", "behavior", "autoscaling.alpha.kubernetes.io/behavior"),
    ("status", "currentMetrics", "autoscaling.alpha.kubernetes.io/current-metrics"),
    ("status", "conditions", "autoscaling.alpha.kubernetes.io/conditions"),
];

/// Sources of metrics, each with its fields: the path of one in `v2`, and its name in `v1`.
const SOURCES: [(&str, &[(&str, &str)]); 5] = [
    (
        "resource",
        &[
            ("name", "name"),
            ("target/averageUtilization", "targetAverageUtilization"),
            ("target/averageValue", "targetAverageValue"),
        ],
    ),
    (
        "containerResource",
        &[
            ("name", "name"),
            ("target/averageUtilization", "targetAverageUtilization"),
            ("target/averageValue", "targetAverageValue"),
            ("container", "container"),
        ],
    ),
    (
        "pods",
        &[
            ("metric/name", "metricName"),
            ("target/averageValue", "targetAverageValue"),
            ("metric/selector", "selector"),
        ],
    ),
    (
        "object",
        &[
            ("describedObject", "target"),
            ("metric/name", "metricName"),
            ("target/value", "targetValue"),
            ("metric/selector", "selector"),
            ("target/averageValue", "averageValue"),
        ],
    ),
    (
        "external",
        &[
            ("metric/name", "metricName"),
            ("metric/selector", "metricSelector"),
            ("target/value", "targetValue"),
            ("target/averageValue", "targetAverageValue"),
        ],
    ),
];
/// What a target is said to be of by the field that it has, in `v2`.
const TARGETS: [(&str, &str); 3] =
    [("averageUtilization", "Utilization"), ("averageValue", "AverageValue"), ("value", "Value")];

/// A `v2` autoscaler in the shape of `v1`.
pub(super) fn to_v1(stored: &Value) -> Value {
    let mut view = stored.clone();
    let mut annotations = Map::new();
    let metrics = stored.pointer("/spec/metrics").and_then(Value::as_array);
    let (load, others): (Vec<&Value>, Vec<&Value>) =
        metrics.into_iter().flatten().partition(|one| is_load(one));
    let percentage = load.first().and_then(|one| one.pointer("/resource/target/averageUtilization")).cloned();
    object::set_field(&mut view["spec"], "targetCPUUtilizationPercentage", percentage);
    object::set_field(&mut view["spec"], "metrics", None);
    let others: Vec<Value> = others.into_iter().chain(load.into_iter().skip(1)).map(metric_to_v1).collect();
    if !others.is_empty() {
        annotations.insert(METRICS.to_owned(), Value::from(others).to_string().into());
    }
    let current = pointer::items(stored, "/status/currentMetrics").iter();
    let current = current.into_iter().find_map(|one| {
        one.pointer("/resource/current/averageUtilization").filter(|_| one["resource"]["name"] == "cpu")
    });
    if view.get("status").is_some() {
        object::set_field(&mut view["status"], "currentCPUUtilizationPercentage", current.cloned());
    }
    for (half, field, annotation) in ANNOTATED {
        let value = stored.get(half).and_then(|half| half.get(field)).filter(|value| !value.is_null());
        if let Some(value) = value {
            annotations.insert(annotation.to_owned(), value.to_string().into());
            object::set_field(&mut view[half], field, None);
        }
    }
    if !annotations.is_empty() {
        object::member_mut(object::meta_mut(&mut view), "annotations").append(&mut annotations);
    }
    view
}

/// A `v1` autoscaler in the shape of `v2`.
pub(super) fn to_v2(sent: &Value) -> Value {
    let mut view = sent.clone();
    let mut metrics: Vec<Value> = annotated(&mut view, METRICS)
        .and_then(|text| serde_json::from_str::<Vec<Value>>(&text).ok())
        .map(|metrics| metrics.iter().map(metric_to_v2).collect())
        .filter(|metrics: &Vec<Value>| metrics.iter().all(|metric| is_of("MetricSpec", metric)))
        .unwrap_or_default();
    let percentage = sent.pointer("/spec/targetCPUUtilizationPercentage").filter(|value| !value.is_null());
    if let Some(percentage) = percentage {
        let target = json!({"type": "Utilization", "averageUtilization": percentage});
        metrics.insert(0, json!({"type": "Resource", "resource": {"name": "cpu", "target": target}}));
    }
    object::set_field(&mut view["spec"], "targetCPUUtilizationPercentage", None);
    object::set_field(&mut view["spec"], "metrics", (!metrics.is_empty()).then(|| metrics.into()));
    for (half, field, annotation) in ANNOTATED {
        let value = annotated(&mut view, annotation).and_then(|text| serde_json::from_str(&text).ok());
        if let Some(value) = value.filter(|value| well_formed(field, value)) {
            object::set_field(&mut view[half], field, Some(value));
        }
    }
    if view.get("status").is_some() {
        object::set_field(&mut view["status"], "currentCPUUtilizationPercentage", None);
    }
    view
}

/// Whether what an annotation holds is what the field holds; anything else is left out.
fn well_formed(field: &str, value: &Value) -> bool {
    let all = |of: &str| value.as_array().is_some_and(|items| items.iter().all(|item| is_of(of, item)));
    match field {
        "currentMetrics" => all("MetricStatus"),
        "conditions" => all("HorizontalPodAutoscalerCondition"),
        _ => is_of("HorizontalPodAutoscalerBehavior", value) && *value != json!({}),
    }
}

/// Whether the value can be read as that type of `autoscaling/v2`.
fn is_of(name: &str, value: &Value) -> bool {
    let tables = tables();
    let id = tables.by_openapi_name(&format!("io.k8s.api.autoscaling.v2.{name}"));
    value.is_object() && id.is_some_and(|id| decode(tables, id, value.clone()).is_ok())
}

/// Takes an annotation away.
fn annotated(object: &mut Value, name: &str) -> Option<String> {
    let annotations = object.pointer_mut("/metadata/annotations")?.as_object_mut()?;
    let text = annotations.shift_remove(name)?.as_str()?.to_owned();
    if annotations.is_empty() {
        object::set_meta(object, "annotations", None);
    }
    Some(text)
}

/// Whether a metric is the one that `v1` has a field for.
fn is_load(metric: &Value) -> bool {
    metric.pointer("/resource/name").is_some_and(|name| name == "cpu")
        && metric.pointer("/resource/target/averageUtilization").is_some()
}

fn metric_to_v1(metric: &Value) -> Value {
    converted(metric, |source, fields| {
        let mut out = Map::new();
        for (path, name) in fields {
            if let Some(value) = source.pointer(&format!("/{path}")) {
                out.insert((*name).to_owned(), value.clone());
            }
        }
        Value::Object(out)
    })
}

fn metric_to_v2(metric: &Value) -> Value {
    converted(metric, |source, fields| {
        let mut out = json!({});
        for (path, name) in fields {
            let Some(value) = source.get(*name) else { continue };
            let Some((part, field)) = path.split_once('/') else {
                out[*path] = value.clone();
                continue;
            };
            out[part][field] = value.clone();
            if let Some((_, kind)) = TARGETS.iter().find(|(target, _)| *target == field) {
                out[part]["type"] = (*kind).into();
            }
        }
        out
    })
}

/// A metric whose source, the member beside its type, is made anew out of the source and its fields.
fn converted(metric: &Value, source: impl Fn(&Value, &[(&str, &str)]) -> Value) -> Value {
    let Value::Object(members) = metric else { return metric.clone() };
    let fields =
        |of: &str| SOURCES.iter().find(|(name, _)| *name == of).map_or(&[][..], |(_, fields)| fields);
    let made = members.iter().map(|(name, value)| match value {
        Value::Object(_) => (name.clone(), source(value, fields(name))),
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
                    {"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 50, "type": "Utilization"}}},
                    {"type": "Resource", "resource": {"name": "memory", "target": {"averageValue": "1Mi", "type": "AverageValue"}}},
                    {"type": "External", "external": {"metric": {"name": "q", "selector": {"matchLabels": {"a": "b"}}},
                        "target": {"value": "7", "type": "Value"}}}
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
