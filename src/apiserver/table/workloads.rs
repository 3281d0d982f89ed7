//! Computes cells that summarize the state of an object: pods, jobs, services, nodes.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::duration;
use super::texts::{age, items, name, or, selector_text, text};
use crate::resources::ResourceInfo;

/// Marks rows of pods that have ended, which `kubectl get` without `-A` may dim or hide.
pub(super) fn row_conditions(info: &ResourceInfo, object: &Value) -> Option<Value> {
    if !info.builtin || info.kind != "Pod" {
        return None;
    }
    let (reason, message) = match text(object, "/status/phase") {
        "Succeeded" => ("Succeeded", "The pod has completed successfully."),
        "Failed" => ("Failed", "The pod failed."),
        _ => return None,
    };
    Some(json!([{"type": "Completed", "status": "True", "reason": reason, "message": message}]))
}

pub(super) fn pod(object: &Value, now: Timestamp) -> Vec<Value> {
    let containers = items(object, "/status/containerStatuses");
    let sidecar = |status: &&Value| {
        items(object, "/spec/initContainers").iter().any(|container| {
            text(container, "/name") == text(status, "/name") && text(container, "/restartPolicy") == "Always"
        })
    };
    let sidecars: Vec<&Value> =
        items(object, "/status/initContainerStatuses").iter().filter(sidecar).collect();
    let is_ready = |status: &&Value| status.get("ready").is_some_and(|ready| ready == true);
    let total = items(object, "/spec/containers").len()
        + items(object, "/spec/initContainers")
            .iter()
            .filter(|c| text(c, "/restartPolicy") == "Always")
            .count();
    let ready =
        containers.iter().filter(is_ready).count() + sidecars.iter().copied().filter(is_ready).count();
    let gates = items(object, "/spec/readinessGates");
    let passed = gates.iter().filter(|gate| condition_is_true(object, text(gate, "/conditionType"))).count();
    let gates = if gates.is_empty() { "<none>".to_owned() } else { format!("{passed}/{}", gates.len()) };
    vec![
        name(object),
        format!("{ready}/{total}").into(),
        pod_status(object).into(),
        restarts(containers.iter().chain(sidecars), now).into(),
        age(object, now).into(),
        or(text(object, "/status/podIP"), "<none>").into(),
        or(text(object, "/spec/nodeName"), "<none>").into(),
        or(text(object, "/status/nominatedNodeName"), "<none>").into(),
        gates.into(),
    ]
}

/// Returns the most important of phase, container reasons, and deletion.
fn pod_status(object: &Value) -> String {
    let mut reason = or(text(object, "/status/reason"), text(object, "/status/phase"));
    if items(object, "/status/conditions")
        .iter()
        .any(|condition| text(condition, "/reason") == "SchedulingGated")
    {
        "SchedulingGated".clone_into(&mut reason);
    }
    let initializing = initializing(object);
    if let Some(initializing) = &initializing {
        reason.clone_from(initializing);
    }
    if initializing.is_none() || condition_is_true(object, "Initialized") {
        let mut running = false;
        for status in items(object, "/status/containerStatuses").iter().rev() {
            match container_reason(status) {
                Some(text) => reason = text,
                None => running |= status.get("ready").is_some_and(|ready| ready == true),
            }
        }
        if reason == "Completed" && running {
            let ready = condition_is_true(object, "Ready");
            (if ready { "Running" } else { "NotReady" }).clone_into(&mut reason);
        }
    }
    if object.pointer("/metadata/deletionTimestamp").is_some() {
        return if text(object, "/status/reason") == "NodeLost" {
            "Unknown".to_owned()
        } else {
            "Terminating".to_owned()
        };
    }
    reason
}

/// Returns `Init:1/2`, or the reason why an init container has not succeeded; `None` once all have.
fn initializing(object: &Value) -> Option<String> {
    let total = items(object, "/spec/initContainers").len();
    for (index, status) in items(object, "/status/initContainerStatuses").iter().enumerate() {
        let state = status.get("state").unwrap_or(&Value::Null);
        if state.pointer("/terminated/exitCode").is_some_and(|code| *code == 0)
            || status.get("started").is_some_and(|started| started == true)
        {
            continue;
        }
        return Some(match container_reason(status) {
            Some(reason) if !reason.is_empty() && reason != "PodInitializing" => format!("Init:{reason}"),
            _ => format!("Init:{index}/{total}"),
        });
    }
    None
}

fn container_reason(status: &Value) -> Option<String> {
    let waiting = text(status, "/state/waiting/reason");
    if !waiting.is_empty() {
        return Some(waiting.to_owned());
    }
    let terminated = status.pointer("/state/terminated")?;
    Some(match (text(terminated, "/reason"), terminated.get("signal").and_then(Value::as_i64).unwrap_or(0)) {
        ("", 0) => format!("ExitCode:{}", terminated.get("exitCode").and_then(Value::as_i64).unwrap_or(0)),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    })
}

/// Formats restarts: `3`, or `3 (5m ago)` if the end of a previous container is known.
fn restarts<'v>(statuses: impl Iterator<Item = &'v Value>, now: Timestamp) -> String {
    let mut count = 0;
    let mut last = None;
    for status in statuses {
        count += status.get("restartCount").and_then(Value::as_i64).unwrap_or(0);
        let finished = text(status, "/lastState/terminated/finishedAt").parse::<Timestamp>().ok();
        last = last.max(finished);
    }
    match last {
        Some(last) if count > 0 => {
            format!("{count} ({} ago)", duration::human(now.as_second() - last.as_second()))
        }
        _ => count.to_string(),
    }
}

pub(super) fn job(object: &Value, now: Timestamp) -> Vec<Value> {
    let succeeded = object.pointer("/status/succeeded").and_then(Value::as_i64).unwrap_or(0);
    let wanted = object.pointer("/spec/completions").and_then(Value::as_i64);
    let parallelism = object.pointer("/spec/parallelism").and_then(Value::as_i64).unwrap_or(0);
    let completions = match wanted {
        Some(wanted) => format!("{succeeded}/{wanted}"),
        None if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        None => format!("{succeeded}/1"),
    };
    let time = |path| text(object, path).parse::<Timestamp>().ok();
    let took = time("/status/startTime").map_or_else(String::new, |start| {
        let end = time("/status/completionTime").unwrap_or(now);
        duration::human(end.as_second() - start.as_second())
    });
    let containers = items(object, "/spec/template/spec/containers");
    let joined = |path: &str| containers.iter().map(|c| text(c, path)).collect::<Vec<_>>().join(",");
    vec![
        name(object),
        job_status(object).into(),
        completions.into(),
        took.into(),
        age(object, now).into(),
        joined("/name").into(),
        joined("/image").into(),
        selector_text(object.pointer("/spec/selector")).into(),
    ]
}

fn job_status(object: &Value) -> &'static str {
    if condition_is_true(object, "Complete") {
        "Complete"
    } else if condition_is_true(object, "Failed") {
        "Failed"
    } else if object.pointer("/metadata/deletionTimestamp").is_some() {
        "Terminating"
    } else if condition_is_true(object, "Suspended") {
        "Suspended"
    } else if condition_is_true(object, "FailureTarget") {
        "FailureTarget"
    } else if condition_is_true(object, "SuccessCriteriaMet") {
        "SuccessCriteriaMet"
    } else {
        "Running"
    }
}

pub(super) fn service(object: &Value, now: Timestamp) -> Vec<Value> {
    let kind = text(object, "/spec/type");
    let list =
        |path: &str| items(object, path).iter().filter_map(Value::as_str).collect::<Vec<_>>().join(",");
    let external = list("/spec/externalIPs");
    let external = match kind {
        "ExternalName" => text(object, "/spec/externalName").to_owned(),
        "LoadBalancer" => {
            let ingress: Vec<&str> = items(object, "/status/loadBalancer/ingress")
                .iter()
                .map(|ingress| {
                    if text(ingress, "/ip").is_empty() {
                        text(ingress, "/hostname")
                    } else {
                        text(ingress, "/ip")
                    }
                })
                .collect();
            or([external.as_str(), &ingress.join(",")].join(",").trim_matches(','), "<pending>")
        }
        _ => or(&external, "<none>"),
    };
    let ports: Vec<String> = items(object, "/spec/ports")
        .iter()
        .map(|port| {
            let number = |path| port.get(path).and_then(Value::as_i64).unwrap_or(0);
            let node_port = match number("nodePort") {
                0 => String::new(),
                port => format!(":{port}"),
            };
            format!("{}{node_port}/{}", number("port"), or(text(port, "/protocol"), "TCP"))
        })
        .collect();
    let selector = json!({"matchLabels": object.pointer("/spec/selector").cloned().unwrap_or_default()});
    vec![
        name(object),
        or(kind, "ClusterIP").into(),
        or(text(object, "/spec/clusterIP"), "<none>").into(),
        external.into(),
        or(&ports.join(","), "<none>").into(),
        age(object, now).into(),
        selector_text(Some(&selector)).into(),
    ]
}

pub(super) fn node(object: &Value, now: Timestamp) -> Vec<Value> {
    let ready =
        items(object, "/status/conditions").iter().find(|condition| text(condition, "/type") == "Ready");
    let mut status = match ready.map(|condition| text(condition, "/status")) {
        Some("True") => "Ready".to_owned(),
        Some(_) => "NotReady".to_owned(),
        None => "Unknown".to_owned(),
    };
    if object.pointer("/spec/unschedulable").is_some_and(|unschedulable| *unschedulable == true) {
        status.push_str(",SchedulingDisabled");
    }
    let mut roles: Vec<&str> = Vec::new();
    if let Some(Value::Object(labels)) = object.pointer("/metadata/labels") {
        for (key, value) in labels {
            match key.strip_prefix("node-role.kubernetes.io/") {
                Some(role) if !role.is_empty() => roles.push(role),
                _ if key == "kubernetes.io/role" => {
                    roles.extend(value.as_str().filter(|role| !role.is_empty()))
                }
                _ => {}
            }
        }
    }
    roles.sort_unstable();
    let address = |kind: &str| {
        let found = items(object, "/status/addresses").iter().find(|address| text(address, "/type") == kind);
        or(found.map(|address| text(address, "/address")).unwrap_or_default(), "<none>")
    };
    let unknown = |path| or(text(object, path), "<unknown>");
    vec![
        name(object),
        status.into(),
        or(&roles.join(","), "<none>").into(),
        age(object, now).into(),
        text(object, "/status/nodeInfo/kubeletVersion").into(),
        address("InternalIP").into(),
        address("ExternalIP").into(),
        unknown("/status/nodeInfo/osImage").into(),
        unknown("/status/nodeInfo/kernelVersion").into(),
        unknown("/status/nodeInfo/containerRuntimeVersion").into(),
    ]
}

fn condition_is_true(object: &Value, kind: &str) -> bool {
    items(object, "/status/conditions")
        .iter()
        .any(|condition| text(condition, "/type") == kind && text(condition, "/status") == "True")
}
