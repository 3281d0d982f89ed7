//! Computes cells of workload controllers and of PersistentVolumeClaims.

use jiff::Timestamp;
use serde_json::Value;

use super::texts::{age, elapsed, items, labels, name, or, selector_text, text};

pub(super) fn deployment(object: &Value, now: Timestamp) -> Vec<Value> {
    let mut cells = vec![
        name(object),
        ready(object),
        number(object, "/status/updatedReplicas").into(),
        number(object, "/status/availableReplicas").into(),
        age(object, now).into(),
    ];
    cells.extend(template(object, "/spec"));
    cells.push(selector_text(object.pointer("/spec/selector")).into());
    cells
}

pub(super) fn replica_set(object: &Value, now: Timestamp) -> Vec<Value> {
    let mut cells = vec![
        name(object),
        number(object, "/spec/replicas").into(),
        number(object, "/status/replicas").into(),
        number(object, "/status/readyReplicas").into(),
        age(object, now).into(),
    ];
    cells.extend(template(object, "/spec"));
    cells.push(selector_text(object.pointer("/spec/selector")).into());
    cells
}

pub(super) fn stateful_set(object: &Value, now: Timestamp) -> Vec<Value> {
    let mut cells = vec![name(object), ready(object), age(object, now).into()];
    cells.extend(template(object, "/spec"));
    cells
}

pub(super) fn daemon_set(object: &Value, now: Timestamp) -> Vec<Value> {
    let counts = [
        "/status/desiredNumberScheduled",
        "/status/currentNumberScheduled",
        "/status/numberReady",
        "/status/updatedNumberScheduled",
        "/status/numberAvailable",
    ];
    let mut cells = vec![name(object)];
    cells.extend(counts.map(|path| Value::from(number(object, path))));
    cells.push(labels(object.pointer("/spec/template/spec/nodeSelector")).into());
    cells.push(age(object, now).into());
    cells.extend(template(object, "/spec"));
    cells.push(selector_text(object.pointer("/spec/selector")).into());
    cells
}

pub(super) fn cron_job(object: &Value, now: Timestamp) -> Vec<Value> {
    let last = text(object, "/status/lastScheduleTime");
    let suspended = object.pointer("/spec/suspend") == Some(&Value::Bool(true));
    let mut cells = vec![
        name(object),
        text(object, "/spec/schedule").into(),
        or(text(object, "/spec/timeZone"), "<none>").into(),
        if suspended { "True" } else { "False" }.into(),
        items(object, "/status/active").len().into(),
        if last.is_empty() { "<none>".to_owned() } else { elapsed(last, now) }.into(),
        age(object, now).into(),
    ];
    cells.extend(template(object, "/spec/jobTemplate/spec"));
    cells.push(selector_text(object.pointer("/spec/jobTemplate/spec/selector")).into());
    cells
}

pub(super) fn claim(object: &Value, now: Timestamp) -> Vec<Value> {
    let terminating = object.pointer("/metadata/deletionTimestamp").is_some();
    vec![
        name(object),
        if terminating { "Terminating" } else { text(object, "/status/phase") }.into(),
        text(object, "/spec/volumeName").into(),
        text(object, "/status/capacity/storage").into(),
        short_modes(items(object, "/status/accessModes")).into(),
        text(object, "/spec/storageClassName").into(),
        or(text(object, "/spec/volumeAttributesClassName"), "<unset>").into(),
        age(object, now).into(),
        or(text(object, "/spec/volumeMode"), "<unset>").into(),
    ]
}

/// Abbreviates the access modes of a volume, in a fixed order, without duplicates.
pub(super) fn short_modes(modes: &[Value]) -> String {
    const SHORT: [(&str, &str); 4] = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let shown = SHORT.iter().filter(|(mode, _)| modes.iter().any(|own| own == mode));
    shown.map(|(_, short)| *short).collect::<Vec<_>>().join(",")
}

/// Formats the number of ready pods and of desired ones.
fn ready(object: &Value) -> Value {
    let (ready, wanted) = (number(object, "/status/readyReplicas"), number(object, "/spec/replicas"));
    format!("{ready}/{wanted}").into()
}

/// Returns names and images of the containers of the template below `spec`.
fn template(object: &Value, spec: &str) -> [Value; 2] {
    let containers = items(object, &format!("{spec}/template/spec/containers"));
    let joined = |path: &str| containers.iter().map(|c| text(c, path)).collect::<Vec<_>>().join(",").into();
    [joined("/name"), joined("/image")]
}

fn number(object: &Value, path: &str) -> i64 {
    object.pointer(path).and_then(Value::as_i64).unwrap_or(0)
}
