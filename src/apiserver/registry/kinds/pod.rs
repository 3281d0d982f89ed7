//! Pods, without a scheduler or a kubelet: pending until a client writes another status.

use serde_json::{Value, json};

pub(super) fn prepare_create(pod: &mut Value) {
    let qos = qos_class(pod);
    pod["status"] = json!({"phase": "Pending", "qosClass": qos});
}

/// A pod that no node has, or that has ended, has nothing to wait for.
pub(super) fn grace_period(pod: &Value, asked: Option<i64>) -> i64 {
    let phase = pod.pointer("/status/phase").and_then(Value::as_str).unwrap_or_default();
    let unscheduled = pod.pointer("/spec/nodeName").and_then(Value::as_str).is_none_or(str::is_empty);
    if unscheduled || phase == "Succeeded" || phase == "Failed" {
        return 0;
    }
    let own = pod.pointer("/spec/terminationGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(30);
    let asked = asked.unwrap_or(own);
    // A negative period means the shortest one that still lets the containers stop.
    if asked < 0 { 1 } else { asked }
}

fn qos_class(pod: &Value) -> &'static str {
    let spec = &pod["spec"];
    let listed = ["containers", "initContainers"].into_iter().filter_map(|list| spec.get(list)?.as_array());
    // A pod that asks for resources as a whole is judged by them.
    let as_whole = spec.pointer("/resources").and_then(Value::as_object).is_some_and(|own| !own.is_empty());
    let containers: Vec<&Value> = if as_whole { vec![spec] } else { listed.flatten().collect() };
    let part = |container: &Value, side: &str, name: &str| {
        container.pointer(&format!("/resources/{side}/{name}")).cloned()
    };
    let mut any = false;
    let mut all = !containers.is_empty();
    for container in containers {
        for name in ["cpu", "memory"] {
            let (request, limit) = (part(container, "requests", name), part(container, "limits", name));
            any |= request.is_some() || limit.is_some();
            all &= limit.is_some() && (request.is_none() || request == limit);
        }
    }
    match (any, all) {
        (_, true) => "Guaranteed",
        (true, false) => "Burstable",
        (false, false) => "BestEffort",
    }
}
