//! Warnings about accepted workloads: names that become invalid host names, settings that hide or ignore
//! one another, and deprecated ones. Given for what is new: for a changed object only if its specification changed.

use std::collections::{HashMap, HashSet};

use admit_apimachinery::findings::MAX_FINDINGS;
use admit_apimachinery::{go, names::NameRule};
use serde_json::Value;

use crate::object;
use crate::resources::ResourceInfo;

/// The warnings that `object` deserves, which replaces `old` if there is one.
pub(super) fn of(info: &ResourceInfo, object: &Value, old: Option<&Value>) -> Vec<String> {
    // What of a pod may change is nothing to warn of.
    if old.is_some_and(|old| old.get("spec") == object.get("spec") || info.kind == "Pod") {
        return Vec::new();
    }
    let mut warnings = Vec::new();
    if old.is_none() {
        warnings.extend(name(info, object));
    }
    if info.kind == "StatefulSet" {
        warnings.extend(history(object));
    }
    let template = template(&info.kind).and_then(|path| Some(pod(object.pointer(path)?, path)));
    warnings.extend(template.unwrap_or_default());
    warnings
}

/// A negative limit keeps everything, which few mean.
fn history(set: &Value) -> Option<String> {
    let limit = set.pointer("/spec/revisionHistoryLimit").and_then(Value::as_i64)?;
    let why = "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended";
    (limit < 0).then(|| why.to_owned())
}

/// Where a kind holds the specification of pods.
fn template(kind: &str) -> Option<&'static str> {
    match kind {
        "Pod" => Some("/spec"),
        "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet" | "ReplicationController" | "Job" => {
            Some("/spec/template/spec")
        }
        "CronJob" => Some("/spec/jobTemplate/spec/template/spec"),
        "PodTemplate" => Some("/template/spec"),
        _ => None,
    }
}

/// Pods and their host names are made from the names of some kinds.
fn name(info: &ResourceInfo, object: &Value) -> Option<String> {
    let used = match info.kind.as_str() {
        "Pod" => "the Pod's hostname",
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

fn pod(spec: &Value, pointer: &str) -> Vec<String> {
    let path = pointer.trim_start_matches('/').replace('/', ".");
    let mut warnings = Vec::new();
    let mut addresses = HashSet::new();
    for (index, alias) in items(spec, "hostAliases").iter().enumerate() {
        let ip = text(alias, "ip");
        if !addresses.insert(ip) {
            warnings.push(format!("{path}.hostAliases[{index}].ip: duplicate ip {}", go::quote(ip)));
        }
    }
    for list in ["initContainers", "containers"] {
        for (index, container) in items(spec, list).iter().enumerate() {
            let path = format!("{path}.{list}[{index}]");
            warnings.extend(fractions(container, &path));
            warnings.extend(hidden(container, &path));
        }
    }
    warnings.extend(shared_ports(spec, &path));
    warnings
}

/// Memory has no parts of bytes.
fn fractions(container: &Value, path: &str) -> Vec<String> {
    let mut warnings = Vec::new();
    for resource in ["memory", "ephemeral-storage"] {
        for side in ["limits", "requests"] {
            let value = container.pointer(&format!("/resources/{side}/{resource}")).and_then(Value::as_str);
            if let Some(value) = value.filter(|value| value.ends_with(['m', 'u', 'n'])) {
                warnings.push(format!(
                    "{path}.resources.{side}[{resource}]: fractional byte value {} is invalid, must be an integer",
                    go::quote(value)
                ));
            }
        }
    }
    warnings
}

fn hidden(container: &Value, path: &str) -> Vec<String> {
    let variables = items(container, "env");
    let mut names = HashSet::new();
    let again = variables.iter().enumerate().filter(|(_, variable)| !names.insert(text(variable, "name")));
    again
        .map(|(index, variable)| {
            let name = go::quote(text(variable, "name"));
            format!("{path}.env[{index}]: hides previous definition of {name}, which may be dropped when using apply")
        })
        .collect()
}

/// Containers of a pod share its address, and so its ports.
fn shared_ports(spec: &Value, path: &str) -> Vec<String> {
    let ports: Vec<(String, &Value)> = items(spec, "containers")
        .iter()
        .enumerate()
        .flat_map(|(at, container)| {
            let ports = items(container, "ports").iter().enumerate();
            ports.map(move |(index, port)| (format!("containers[{at}].ports[{index}]"), port))
        })
        .collect();
    let mut known: HashMap<[Option<&Value>; 4], Vec<&str>> = HashMap::new();
    let mut warnings = Vec::new();
    for (place, port) in &ports {
        let earlier = known
            .entry(["containerPort", "protocol", "hostPort", "hostIP"].map(|field| port.get(field)))
            .or_default();
        // Each with every other is quadratic; no answer has room for as many.
        let room = MAX_FINDINGS.saturating_sub(warnings.len());
        warnings.extend(
            earlier
                .iter()
                .take(room)
                .map(|earlier| format!("{path}.{place}: duplicate port definition with {path}.{earlier}")),
        );
        earlier.push(place);
    }
    warnings
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn items<'v>(value: &'v Value, name: &str) -> &'v [Value] {
    value.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}
