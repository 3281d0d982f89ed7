//! Workload controllers: the selector must match the labels of the pod template, and the restart policy must be
//! Always.

use serde_json::Value;

use super::{not_negative, one_of, pod, text, workload};
use crate::status::{Cause, Causes};

const POLICIES: [&str; 3] = ["Allow", "Forbid", "Replace"];
const NULL: &Value = &Value::Null;

/// A Deployment, ReplicaSet, StatefulSet or DaemonSet.
pub(super) fn controller(kind: &str, object: &Value) -> Causes {
    let spec = object.get("spec").unwrap_or(NULL);
    let counts = ["replicas", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"];
    let mut causes: Causes = counts.iter().filter_map(|name| not_negative(spec, "spec", name)).collect();
    let template = spec.get("template").unwrap_or(NULL);
    causes.extend(selector(kind, spec.get("selector").unwrap_or(NULL), template));
    let pod_spec = template.get("spec").unwrap_or(NULL);
    // Volumes of a StatefulSet's pods come of its claims, too; upstream leaves their specification to the pods.
    if kind != "StatefulSet" {
        causes.extend(pod::spec(pod_spec, "spec.template.spec"));
    }
    match text(pod_spec, "restartPolicy") {
        "" | "Always" => {}
        other => {
            causes.push(Cause::unsupported("spec.template.spec.restartPolicy", &other.into(), &["Always"]))
        }
    }
    causes
}

fn selector(kind: &str, selector: &Value, template: &Value) -> Causes {
    let empty = |field: &str| {
        selector.get(field).is_none_or(|value| match value {
            Value::Object(labels) => labels.is_empty(),
            Value::Array(items) => items.is_empty(),
            _ => true,
        })
    };
    if !selector.is_object() {
        return Causes::from(Cause::required("spec.selector", ""));
    }
    if empty("matchLabels") && empty("matchExpressions") {
        let why = format!("empty selector is invalid for {}", kind.to_lowercase());
        return Causes::from(Cause::invalid("spec.selector", selector, &why));
    }
    let labels = template.pointer("/metadata/labels").unwrap_or(NULL);
    let wanted = selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten();
    if wanted.into_iter().all(|(key, value)| labels.get(key) == Some(value)) {
        return Causes::default();
    }
    let why = "`selector` does not match template `labels`";
    Causes::from(Cause::invalid("spec.template.metadata.labels", labels, why))
}

/// What of a controller may not change.
pub(super) fn changed(object: &Value, old: &Value) -> Option<Cause> {
    let selector = |object: &Value| object.pointer("/spec/selector").cloned().unwrap_or_default();
    let (new, before) = (selector(object), selector(old));
    (new != before).then(|| Cause::invalid("spec.selector", &new, "field is immutable"))
}

pub(super) fn cron_job(object: &Value) -> Causes {
    let spec = object.get("spec").unwrap_or(NULL);
    let mut causes = Causes::default();
    if text(spec, "schedule").is_empty() {
        causes.push(Cause::required("spec.schedule", ""));
    }
    causes.extend(one_of(spec, "spec", "concurrencyPolicy", &POLICIES));
    for name in ["startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"] {
        causes.extend(not_negative(spec, "spec", name));
    }
    let job = spec.get("jobTemplate").unwrap_or(NULL);
    let job = workload::job(job).into_iter().map(|cause| {
        let field = cause.field.strip_prefix("spec").unwrap_or(&cause.field);
        Cause { field: format!("spec.jobTemplate.spec{field}"), ..cause.clone() }
    });
    causes.extend(job);
    causes
}
