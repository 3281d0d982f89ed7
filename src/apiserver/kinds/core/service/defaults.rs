//! Sets the defaults of Services.

use serde_json::{Value, json};

use super::node_ports;
use crate::kinds::shared::defaults::set_absent;
use crate::object;

/// Default timeout of client IP affinity.
const AFFINITY_SECONDS: i64 = 10_800;

pub(super) fn fill(_: &str, service: &mut Value) {
    set_absent(&mut service["spec"], &[("type", json!("ClusterIP")), ("sessionAffinity", json!("None"))]);
    if node_ports::is_addressed(service) {
        set_absent(&mut service["spec"], &[("internalTrafficPolicy", json!("Cluster"))]);
    }
    if node_ports::is_external(service) {
        set_absent(&mut service["spec"], &[("externalTrafficPolicy", json!("Cluster"))]);
    }
    if node_ports::is_balanced(service) {
        set_absent(&mut service["spec"], &[("allocateLoadBalancerNodePorts", json!(true))]);
        reached(service);
    }
    let spec = &mut service["spec"];
    match spec.get("sessionAffinity").and_then(Value::as_str) {
        Some("None") => object::set_field(spec, "sessionAffinityConfig", None),
        Some("ClientIP") => {
            let config = object::member_mut(object::map_of(spec), "sessionAffinityConfig");
            let client = config.entry("clientIP").or_insert(json!({}));
            set_absent(client, &[("timeoutSeconds", json!(AFFINITY_SECONDS))]);
        }
        _ => {}
    }
    let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
    ports.into_iter().flatten().for_each(port);
}

/// Sets the default mode of load balancer addresses.
fn reached(service: &mut Value) {
    let places = service.pointer_mut("/status/loadBalancer/ingress").and_then(Value::as_array_mut);
    for place in places.into_iter().flatten() {
        if place.get("ip").and_then(Value::as_str).is_some_and(|ip| !ip.is_empty()) {
            set_absent(place, &[("ipMode", json!("VIP"))]);
        }
    }
}

fn port(port: &mut Value) {
    set_absent(port, &[("protocol", json!("TCP"))]);
    // An unset target port reads as zero, which is not a valid port.
    let unset = port
        .get("targetPort")
        .is_none_or(|target| matches!(target, Value::Null) || *target == 0 || *target == "");
    if let Some(number) = port.get("port").filter(|_| unset).cloned() {
        object::set_field(port, "targetPort", Some(number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn balancers_are_reached_by_their_address() {
        let mut service = json!({"spec": {"type": "LoadBalancer", "ports": [{"port": 1}]},
            "status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}, {"hostname": "a"}]}}});
        fill("v1", &mut service);
        assert_eq!(
            service["status"]["loadBalancer"]["ingress"],
            json!([{"ip": "1.2.3.4", "ipMode": "VIP"}, {"hostname": "a"}])
        );
        assert_eq!(service["spec"]["ports"], json!([{"port": 1, "protocol": "TCP", "targetPort": 1}]));
        assert_eq!(service["spec"]["externalTrafficPolicy"], "Cluster");
    }
}
