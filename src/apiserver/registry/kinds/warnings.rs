//! Warnings about accepted workloads: names that become invalid host names, settings that hide or ignore
//! one another, and deprecated ones. Given for what is new: for a changed object only if its specification changed.

use admit_apimachinery::names::NameRule;
use serde_json::Value;

use crate::kinds::field::Field;
use crate::kinds::shared::pod_spec;
use crate::object;
use crate::resources::ResourceInfo;

/// The warnings that `object` deserves, which replaces `old` if there is one.
pub(super) fn of(info: &ResourceInfo, object: &Value, old: Option<&Value>) -> Vec<String> {
    if old.is_some_and(|old| old.get("spec") == object.get("spec")) {
        return Vec::new();
    }
    let mut warnings = Vec::new();
    if old.is_none() {
        warnings.extend(name(info, object));
    }
    if info.kind == "StatefulSet" {
        warnings.extend(history(object));
    }
    let template = template(&info.kind, object);
    warnings.extend(template.map(|template| pod_spec::warnings::of(&template, false)).unwrap_or_default());
    warnings
}

/// A negative limit keeps everything, which few mean.
fn history(set: &Value) -> Option<String> {
    let limit = set.pointer("/spec/revisionHistoryLimit").and_then(Value::as_i64)?;
    let why = "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended";
    (limit < 0).then(|| why.to_owned())
}

/// The template of pods of a kind that holds one.
fn template<'o>(kind: &str, object: &'o Value) -> Option<Field<'o>> {
    let spec = Field::root(object).get("spec");
    match kind {
        "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet" | "ReplicationController" | "Job" => {
            Some(spec.get("template"))
        }
        "CronJob" => Some(spec.get("jobTemplate").get("spec").get("template")),
        _ => None,
    }
}

/// Pods and their host names are made from the names of some kinds.
fn name(info: &ResourceInfo, object: &Value) -> Option<String> {
    let used = match info.kind.as_str() {
        "Deployment" | "ReplicaSet" | "ReplicationController" | "Job" | "CronJob" => {
            "Pod names and hostnames"
        }
        _ => return None,
    };
    let problems = NameRule::Label.problems(object::name(object), false);
    (!problems.is_empty()).then(|| {
        format!(
            "metadata.name: this is used in {used}, which can result in surprising behavior; a DNS label is \
             recommended: [{}]",
            problems.join(", ")
        )
    })
}
