//! Jobs.

use std::collections::HashSet;

use serde_json::Value;

use super::{items, label_pairs, not_negative, one_of, pod, text, texts_of};
use crate::status::{Cause, Causes};

const RESTART_POLICIES: [&str; 2] = ["OnFailure", "Never"];

pub(super) fn job(object: &Value) -> Causes {
    let spec = object.get("spec").unwrap_or(&Value::Null);
    let counts =
        ["parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished"];
    let mut causes: Causes = counts.iter().filter_map(|name| not_negative(spec, "spec", name)).collect();
    causes.extend(one_of(spec, "spec", "completionMode", &["NonIndexed", "Indexed"]));
    if text(spec, "completionMode") == "Indexed" {
        if spec.get("completions").is_none() {
            causes.push(Cause::required("spec.completions", "when completion mode is Indexed"));
        }
    } else {
        for name in ["backoffLimitPerIndex", "maxFailedIndexes"] {
            if let Some(value) = spec.get(name) {
                causes.push(Cause::invalid(
                    format!("spec.{name}"),
                    value,
                    "requires indexed completion mode",
                ));
            }
        }
    }
    let template = spec.get("template").unwrap_or(&Value::Null);
    causes.extend(template_labels(template));
    let pod_spec = template.get("spec").unwrap_or(&Value::Null);
    causes.extend(pod::spec(pod_spec, "spec.template.spec"));
    match text(pod_spec, "restartPolicy") {
        "" | "Always" => causes.push(Cause::required(
            "spec.template.spec.restartPolicy",
            "valid values: \"OnFailure\", \"Never\"",
        )),
        policy if !RESTART_POLICIES.contains(&policy) => {
            causes.push(Cause::unsupported(
                "spec.template.spec.restartPolicy",
                &policy.into(),
                &RESTART_POLICIES,
            ));
        }
        _ => {}
    }
    causes
}

fn template_labels(template: &Value) -> Causes {
    label_pairs(texts_of(template.pointer("/metadata/labels")), "spec.template.labels")
}

/// The named items that repeat an earlier name.
pub(super) fn repeated<'v>(list: &'v Value, name: &str) -> Vec<(usize, &'v str)> {
    let mut earlier = HashSet::new();
    let names = items(list, name).iter().map(|item| text(item, "name")).enumerate();
    names.filter(|(_, name)| !earlier.insert(*name)).collect()
}
