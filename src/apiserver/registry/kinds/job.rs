//! Jobs: generates the selector and the template's labels from the Job's own uid.

use serde_json::{Value, json};

use crate::builtin::{internal, tables};
use crate::object;
use crate::status::{Cause, Causes};

const CONTROLLER_UID: &str = "batch.kubernetes.io/controller-uid";
const JOB_NAME: &str = "batch.kubernetes.io/job-name";
/// Labels that older clients select pods by.
const LEGACY: [&str; 2] = ["controller-uid", "job-name"];

pub(super) fn prepare_create(job: &mut Value) {
    job["status"] = json!({});
    if job.pointer("/spec/manualSelector") == Some(&Value::Bool(true)) {
        return;
    }
    let (uid, name) = (object::uid(job).to_owned(), object::name(job).to_owned());
    let template = &mut job["spec"]["template"];
    let labels = object::member_mut(object::meta_mut(template), "labels");
    for (key, value) in [(CONTROLLER_UID, &uid), (JOB_NAME, &name), (LEGACY[0], &uid), (LEGACY[1], &name)] {
        labels.insert(key.to_owned(), value.as_str().into());
    }
    if job.pointer("/spec/selector").is_none() {
        job["spec"]["selector"] = json!({"matchLabels": {CONTROLLER_UID: uid}});
    }
}

/// A Job without labels is read as one with those of its template. It is stored without: a write of what was read is
/// then a change.
pub(super) fn read(job: &mut Value) {
    let labels = job.pointer("/spec/template/metadata/labels").cloned();
    object::set_meta(job, "labels", labels);
}

pub(super) fn reads_otherwise(job: &Value) -> bool {
    job.pointer("/metadata/labels").is_none() && job.pointer("/spec/template/metadata/labels").is_some()
}

/// What of a Job's specification may not change.
pub(super) fn changes(job: &Value, old: &Value) -> Causes {
    let mut causes = Causes::default();
    let suspended = old.pointer("/spec/suspend") == Some(&Value::Bool(true));
    for field in
        ["completions", "selector", "template", "completionMode", "podFailurePolicy", "backoffLimitPerIndex"]
    {
        let at = format!("/spec/{field}");
        let (value, before) =
            (job.pointer(&at).unwrap_or(&Value::Null), old.pointer(&at).unwrap_or(&Value::Null));
        let elastic = field == "completions" && is_elastic(job, value);
        let scheduling = field == "template" && suspended && started_alike(value, before);
        if value == before || elastic || scheduling {
            continue;
        }
        causes.push(match field {
            "template" => template_change(value, before),
            _ => Cause::invalid(format!("spec.{field}"), value, "field is immutable"),
        });
    }
    causes
}

/// Shown is the specification of the pods where that changed, and otherwise all of the template.
fn template_change(template: &Value, before: &Value) -> Cause {
    let spec = |template: &Value| template.get("spec").cloned().unwrap_or_default();
    let (field, kind, value) = if spec(template) == spec(before) {
        ("spec.template", "PodTemplateSpec", template.clone())
    } else {
        ("spec.template.spec", "PodSpec", spec(template))
    };
    let id = tables().by_openapi_name(&format!("io.k8s.api.core.v1.{kind}"));
    let shown = id.map(|id| internal(tables(), id, &value)).unwrap_or_default();
    Cause::invalid(field, &shown, "field is immutable")
}

/// Whether two templates differ only in what a Job that waits for its start may still change: where its pods run.
fn started_alike(one: &Value, two: &Value) -> bool {
    let fixed = |template: &Value| {
        let mut fixed = template.clone();
        for (part, fields) in [
            ("metadata", &["labels", "annotations"][..]),
            ("spec", &["nodeSelector", "affinity", "tolerations", "schedulingGates"]),
        ] {
            let part = object::member_mut(object::map_of(&mut fixed), part);
            fields.iter().for_each(|field| drop(part.shift_remove(*field)));
        }
        fixed
    };
    fixed(one) == fixed(two)
}

/// An indexed Job may be resized when parallelism follows completions.
fn is_elastic(job: &Value, completions: &Value) -> bool {
    job.pointer("/spec/completionMode").and_then(Value::as_str) == Some("Indexed")
        && job.pointer("/spec/parallelism") == Some(completions)
}
