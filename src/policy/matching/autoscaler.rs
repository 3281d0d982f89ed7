//! Converts HorizontalPodAutoscalers between `autoscaling/v1` and `v2`. What v1 has no field for is kept in
//! annotations, in their own formats (kubernetes `pkg/apis/autoscaling/v1/conversion.go`).

use admit_apimachinery::go;
use serde_json::{Map, Value, json};

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";

/// Which part of a metric is converted: the target, or the current status.
#[derive(Clone, Copy)]
enum Side {
    Target,
    Current,
}

/// A v2 object as v1.
pub(super) fn to_v1(object: &Value) -> Value {
    let mut object = without_annotations(object);
    let mut annotations: Vec<(&str, Value)> = Vec::new();
    if let Some(spec) = part(&mut object, "spec") {
        let metrics = take_list(spec, "metrics");
        if let Some(first) = metrics.iter().find(|metric| is_cpu(metric))
            && let Some(target) = first.pointer("/resource/target/averageUtilization")
        {
            spec.insert("targetCPUUtilizationPercentage".to_owned(), target.clone());
        }
        let in_field = |metric: &Value| {
            is_cpu(metric) && metric.pointer("/resource/target/averageUtilization").is_some()
        };
        let others: Vec<Value> = metrics
            .iter()
            .filter(|metric| !in_field(metric))
            .map(|metric| older(metric, Side::Target))
            .collect();
        if !others.is_empty() {
            annotations.push((METRICS, others.into()));
        }
        if let Some(behavior) = spec.shift_remove("behavior").filter(Value::is_object) {
            annotations.push((BEHAVIOR, renamed(&behavior, &BEHAVIOR_FIELDS)));
        }
    }
    if let Some(status) = part(&mut object, "status") {
        let metrics = take_list(status, "currentMetrics");
        for metric in metrics.iter().filter(|metric| is_cpu(metric)) {
            if let Some(current) = metric.pointer("/resource/current/averageUtilization") {
                status.insert("currentCPUUtilizationPercentage".to_owned(), current.clone());
            }
        }
        if !metrics.is_empty() {
            let metrics: Vec<_> = metrics.iter().map(|metric| older(metric, Side::Current)).collect();
            annotations.push((CURRENT_METRICS, metrics.into()));
        }
        let conditions = take_list(status, "conditions");
        if !conditions.is_empty() {
            annotations.push((CONDITIONS, conditions.into()));
        }
    }
    annotate(&mut object, annotations);
    set_version(object, "autoscaling/v1")
}

/// Converts a v1 object to v2. An invalid annotation is ignored.
pub(super) fn to_v2(object: &Value) -> Value {
    let told = |key: &str| -> Option<Value> {
        let text = object.pointer("/metadata/annotations")?.get(key)?.as_str()?;
        crate::read::json::parse(text.as_bytes()).ok().map(|document| document.value)
    };
    let list = |key: &str, side: Side| -> Vec<Value> {
        let found = told(key).and_then(|value| value.as_array().cloned()).unwrap_or_default();
        found.iter().map(|metric| newer(metric, side)).collect()
    };
    let (mut metrics, current) = (list(METRICS, Side::Target), list(CURRENT_METRICS, Side::Current));
    let mut converted = without_annotations(object);
    if let Some(spec) = part(&mut converted, "spec") {
        let target = spec.shift_remove("targetCPUUtilizationPercentage").filter(|target| !target.is_null());
        if let Some(target) = target {
            let target = json!({"type": "Utilization", "averageUtilization": target});
            metrics.push(json!({"type": "Resource", "resource": {"name": "cpu", "target": target}}));
        }
        if !metrics.is_empty() {
            spec.insert("metrics".to_owned(), metrics.into());
        }
        if let Some(behavior) = told(BEHAVIOR).filter(Value::is_object) {
            let back = BEHAVIOR_FIELDS.map(|(new, old)| (old, new));
            spec.insert("behavior".to_owned(), without_nulls(renamed(&behavior, &back)));
        }
    }
    if let Some(status) = part(&mut converted, "status") {
        status.shift_remove("currentCPUUtilizationPercentage");
        if !current.is_empty() {
            status.insert("currentMetrics".to_owned(), current.into());
        }
        if let Some(conditions) = told(CONDITIONS).filter(Value::is_array) {
            status.insert("conditions".to_owned(), conditions);
        }
    }
    set_version(converted, "autoscaling/v2")
}

/// Returns the object without the annotations that only conversion writes.
fn without_annotations(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(Value::Object(annotations)) = object.pointer_mut("/metadata/annotations") {
        for key in [METRICS, CURRENT_METRICS, CONDITIONS, BEHAVIOR] {
            annotations.shift_remove(key);
        }
    }
    object
}

fn annotate(object: &mut Value, annotations: Vec<(&str, Value)>) {
    if annotations.is_empty() {
        return;
    }
    let Some(metadata) = part(object, "metadata") else { return };
    let entry = metadata.entry("annotations").or_insert_with(|| json!({}));
    if let Value::Object(entries) = entry {
        let text = |(key, value): (&str, Value)| (key.to_owned(), Value::from(go::json::text(&value)));
        entries.extend(annotations.into_iter().map(text));
    }
}

fn set_version(mut object: Value, api_version: &str) -> Value {
    if let Value::Object(fields) = &mut object {
        fields.insert("apiVersion".to_owned(), api_version.into());
    }
    object
}

fn part<'v>(object: &'v mut Value, key: &str) -> Option<&'v mut Map<String, Value>> {
    object.get_mut(key).and_then(Value::as_object_mut)
}

fn take_list(map: &mut Map<String, Value>, key: &str) -> Vec<Value> {
    match map.shift_remove(key) {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    }
}

fn is_cpu(metric: &Value) -> bool {
    metric.get("type").is_some_and(|kind| kind == "Resource")
        && metric.pointer("/resource/name").is_some_and(|name| name == "cpu")
}

/// The v2 path of a source's field, and its v1 name.
type Fields = &'static [(&'static str, &'static str)];

/// The sources of metrics with their fields, first those of both sides, then those of targets and of current values.
const SOURCES: [(&str, Fields, Fields, Fields); 5] = [
    (
        "object",
        &[("describedObject", "target"), ("metric/name", "metricName"), ("metric/selector", "selector")],
        &[("target/value", "targetValue"), ("target/averageValue", "averageValue")],
        &[("current/value", "currentValue"), ("current/averageValue", "averageValue")],
    ),
    (
        "pods",
        &[("metric/name", "metricName"), ("metric/selector", "selector")],
        &[("target/averageValue", "targetAverageValue")],
        &[("current/averageValue", "currentAverageValue")],
    ),
    (
        "resource",
        &[("name", "name")],
        &[
            ("target/averageUtilization", "targetAverageUtilization"),
            ("target/averageValue", "targetAverageValue"),
        ],
        &[
            ("current/averageUtilization", "currentAverageUtilization"),
            ("current/averageValue", "currentAverageValue"),
        ],
    ),
    (
        "containerResource",
        &[("name", "name"), ("container", "container")],
        &[
            ("target/averageUtilization", "targetAverageUtilization"),
            ("target/averageValue", "targetAverageValue"),
        ],
        &[
            ("current/averageUtilization", "currentAverageUtilization"),
            ("current/averageValue", "currentAverageValue"),
        ],
    ),
    (
        "external",
        &[("metric/name", "metricName"), ("metric/selector", "metricSelector")],
        &[("target/value", "targetValue"), ("target/averageValue", "targetAverageValue")],
        &[("current/value", "currentValue"), ("current/averageValue", "currentAverageValue")],
    ),
];

/// A metric of v2 in the form of v1.
fn older(metric: &Value, side: Side) -> Value {
    let mut out = Map::from_iter([("type".to_owned(), metric.get("type").cloned().unwrap_or_default())]);
    for (name, both, target, current) in SOURCES {
        let Some(source) = metric.get(name).filter(|source| source.is_object()) else { continue };
        let own = match side {
            Side::Target => target,
            Side::Current => current,
        };
        let found = both
            .iter()
            .chain(own)
            .filter_map(|(new, old)| Some(((*old).to_owned(), source.pointer(&format!("/{new}"))?.clone())));
        out.insert(name.to_owned(), Value::Object(found.collect()));
    }
    Value::Object(out)
}

/// A metric of v1 in the form of v2; the type of a target follows from which value it has.
fn newer(metric: &Value, side: Side) -> Value {
    let mut out = Map::from_iter([("type".to_owned(), metric.get("type").cloned().unwrap_or_default())]);
    for (name, both, target, current) in SOURCES {
        let Some(source) = metric.get(name).filter(|source| source.is_object()) else { continue };
        let (own, part) = match side {
            Side::Target => (target, "target"),
            Side::Current => (current, "current"),
        };
        let mut converted = Map::new();
        for (new, old) in both.iter().chain(own) {
            let Some(value) = source.get(*old) else { continue };
            match new.split_once('/') {
                None => {
                    converted.insert((*new).to_owned(), value.clone());
                }
                Some((parent, field)) => {
                    let parent = converted.entry(parent).or_insert_with(|| json!({}));
                    if let Value::Object(parent) = parent {
                        parent.insert(field.to_owned(), value.clone());
                    }
                }
            }
        }
        if let (Side::Target, Some(Value::Object(target))) = (side, converted.get_mut(part)) {
            let has = |key: &str| target.contains_key(key);
            let kind = match () {
                () if has("averageUtilization") => "Utilization",
                () if has("averageValue") => "AverageValue",
                () => "Value",
            };
            target.insert("type".to_owned(), kind.into());
        }
        out.insert(name.to_owned(), Value::Object(converted));
    }
    Value::Object(out)
}

/// Behaviour is written in the names of the internal type.
const BEHAVIOR_FIELDS: [(&str, &str); 9] = [
    ("scaleUp", "ScaleUp"),
    ("scaleDown", "ScaleDown"),
    ("stabilizationWindowSeconds", "StabilizationWindowSeconds"),
    ("selectPolicy", "SelectPolicy"),
    ("policies", "Policies"),
    ("tolerance", "Tolerance"),
    ("type", "Type"),
    ("value", "Value"),
    ("periodSeconds", "PeriodSeconds"),
];

fn renamed(value: &Value, names: &[(&str, &str)]) -> Value {
    match value {
        Value::Object(fields) => {
            let name = |key: &String| {
                names
                    .iter()
                    .find(|(from, _)| from == key)
                    .map_or_else(|| key.clone(), |(_, to)| (*to).to_owned())
            };
            Value::Object(fields.iter().map(|(key, value)| (name(key), renamed(value, names))).collect())
        }
        Value::Array(items) => items.iter().map(|item| renamed(item, names)).collect(),
        scalar => scalar.clone(),
    }
}

fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(
            fields
                .into_iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(key, value)| (key, without_nulls(value)))
                .collect(),
        ),
        Value::Array(items) => items.into_iter().map(without_nulls).collect(),
        scalar => scalar,
    }
}
