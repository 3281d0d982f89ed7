//! Jobs: the selector must match the labels of the pod template, and is the generated one unless `manualSelector` is
//! set.

use serde_json::{Map, Value};

use super::workload;
use crate::object;
use crate::status::{Cause, Causes};

const NULL: &Value = &Value::Null;
const CONTROLLER_UID: &str = "batch.kubernetes.io/controller-uid";
const JOB_NAME: &str = "batch.kubernetes.io/job-name";

/// What the specification has to satisfy in a Job, beyond what it has to in a template of Jobs.
pub(super) fn spec(job: &Value) -> Causes {
    let mut causes = workload::job(job);
    let selector = job.pointer("/spec/selector").unwrap_or(NULL);
    let labels = job.pointer("/spec/template/metadata/labels").unwrap_or(NULL);
    if selector.is_null() {
        causes.push(Cause::required("spec.selector", ""));
    }
    if selector.is_null() || !chooses(selector, labels) {
        let why = "`selector` does not match template `labels`";
        causes.push(Cause::invalid("spec.template.metadata.labels", labels, why));
    }
    causes
}

/// Whether the selector and the labels that the server made are still those of this Job.
pub(super) fn generated(job: &Value) -> Causes {
    let selector = job.pointer("/spec/selector").unwrap_or(NULL);
    if job.pointer("/spec/manualSelector") == Some(&Value::Bool(true)) || selector.is_null() {
        return Causes::default();
    }
    let labels = job.pointer("/spec/template/metadata/labels").unwrap_or(NULL);
    let expected = [
        ("controller-uid", object::uid(job)),
        ("job-name", object::name(job)),
        (CONTROLLER_UID, object::uid(job)),
        (JOB_NAME, object::name(job)),
    ];
    let mut causes = Causes::default();
    for (key, value) in expected {
        let (field, why) = (format!("spec.template.metadata.labels[{key}]"), format!("must be '{value}'"));
        match labels.get(key).and_then(Value::as_str) {
            None => causes.push(Cause::required(field, &why)),
            Some(found) if found == value => {}
            Some(_) => causes.push(Cause::invalid(field, labels, &why)),
        }
    }
    let made: Map<String, Value> =
        expected.into_iter().map(|(key, value)| (key.to_owned(), value.into())).collect();
    if !chooses(selector, &Value::Object(made)) {
        causes.push(Cause::invalid("spec.selector", selector, "`selector` not auto-generated"));
    }
    causes
}

fn chooses(selector: &Value, labels: &Value) -> bool {
    let labelled = serde_json::json!({"metadata": {"labels": labels}});
    admit_apimachinery::selector::LabelSelector::read(selector).matches_labels_of(Some(&labelled))
}
