//! Matches objects against the scopes of a quota.

use serde_json::Value;

use super::selectors;
use super::usage::Counted;
use crate::admission::plugins::pods::{items, text};
use crate::admission::plugins::resources::of_pod;

/// Returns whether the object matches all scopes of the quota.
pub(super) fn hold(quota: &Value, of: Counted<'_>, object: &Value) -> bool {
    selectors(quota).all(|(scope, operator, values)| holds((scope, operator, &values), of, object))
}

/// Returns whether the object matches one scope selector.
pub(super) fn holds(
    (scope, operator, values): (&str, &str, &[&str]),
    of: Counted<'_>,
    object: &Value,
) -> bool {
    match (of.group, of.plural) {
        ("", "pods") => of_pod_holds(scope, operator, values, object),
        ("", "persistentvolumeclaims") => of_claim_holds(scope, operator, values, object),
        _ => false,
    }
}

fn of_pod_holds(scope: &str, operator: &str, values: &[&str], pod: &Value) -> bool {
    match scope {
        "Terminating" => is_terminating(pod),
        "NotTerminating" => !is_terminating(pod),
        "BestEffort" => is_best_effort(pod),
        "NotBestEffort" => !is_best_effort(pod),
        "PriorityClass" => chosen(operator, values, &[text(pod, "/spec/priorityClassName")]),
        "CrossNamespacePodAffinity" => reaches_out(pod),
        _ => false,
    }
}

fn of_claim_holds(scope: &str, operator: &str, values: &[&str], claim: &Value) -> bool {
    let classes = [
        "/spec/volumeAttributesClassName",
        "/status/currentVolumeAttributesClassName",
        "/status/modifyVolumeStatus/targetVolumeAttributesClassName",
    ];
    scope == "VolumeAttributesClass" && chosen(operator, values, &classes.map(|class| text(claim, class)))
}

/// Returns whether the operator matches one of the names, ignoring empty ones.
fn chosen(operator: &str, values: &[&str], names: &[&str]) -> bool {
    let names: Vec<&str> = names.iter().copied().filter(|name| !name.is_empty()).collect();
    match operator {
        "Exists" => !names.is_empty(),
        "DoesNotExist" => names.is_empty(),
        "In" => names.iter().any(|name| values.contains(name)),
        "NotIn" => names.is_empty() || names.iter().any(|name| !values.contains(name)),
        _ => false,
    }
}

fn is_terminating(pod: &Value) -> bool {
    pod.pointer("/spec/activeDeadlineSeconds").and_then(Value::as_i64).is_some_and(|seconds| seconds >= 0)
}

/// Returns whether the pod sets neither requests nor limits for CPU or memory.
fn is_best_effort(pod: &Value) -> bool {
    ["requests", "limits"].into_iter().all(|side| {
        of_pod(pod, side)
            .iter()
            .all(|(resource, amount)| !matches!(*resource, "cpu" | "memory") || !amount.sign().is_gt())
    })
}

/// Returns whether an affinity term of the pod names other namespaces or selects them.
fn reaches_out(pod: &Value) -> bool {
    let terms = ["podAffinity", "podAntiAffinity"].into_iter().flat_map(|kind| {
        let path = format!("/spec/affinity/{kind}");
        let required = items(pod, &format!("{path}/requiredDuringSchedulingIgnoredDuringExecution"));
        let preferred = items(pod, &format!("{path}/preferredDuringSchedulingIgnoredDuringExecution"));
        required.chain(preferred.filter_map(|term| term.get("podAffinityTerm")))
    });
    let mut terms = terms;
    terms.any(|term| {
        items(term, "/namespaces").next().is_some()
            || term.get("namespaceSelector").is_some_and(Value::is_object)
    })
}
