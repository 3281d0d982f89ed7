//! Node ports of Services, and other fields that only some types of Services have: assigned when the type needs them,
//! kept while it does, and removed with it.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use crate::object;

/// Where ports on nodes lie.
const FIRST: u32 = 30_000;
const COUNT: u32 = 2_768;

/// Gives each port one on the nodes, if the service has such: the one that it had, or one that is made of the uid of the
/// service and of its place in it.
pub(super) fn give(service: &mut Value, old: Option<&Value>) {
    let uid = object::uid(service).to_owned();
    if is_on_nodes(service) {
        let before = old.filter(|old| is_on_nodes(old)).map(ports).unwrap_or_default();
        let mut held: HashMap<_, u64> = HashMap::new();
        for port in before {
            // Of two the first is meant, also where it has no number.
            held.entry(address(port)).or_insert_with(|| node_port(port).unwrap_or(0));
        }
        let mut free = Free::beside(ports(service), &uid);
        let own = service.pointer_mut("/spec/ports").and_then(Value::as_array_mut);
        for port in own.into_iter().flatten().filter(|port| node_port(port).is_none()) {
            let kept = held.get(&address(port)).copied().filter(|number| *number > 0 && free.take(*number));
            let number = kept.unwrap_or_else(|| free.next());
            object::set_field(port, "nodePort", Some(number.into()));
        }
    }
    if is_checked(service) && service.pointer("/spec/healthCheckNodePort").is_none() {
        let kept = old.filter(|old| is_checked(old)).and_then(|old| old.pointer("/spec/healthCheckNodePort"));
        let mut free = Free::beside(ports(service), &uid);
        let number = kept.cloned().unwrap_or_else(|| free.next().into());
        object::set_field(&mut service["spec"], "healthCheckNodePort", Some(number));
    }
}

/// Takes from a changed service what only its former type had, unless the change speaks of it.
pub(super) fn withdraw(service: &mut Value, old: &Value) {
    if is_on_nodes(old) && !is_on_nodes(service) {
        let same: Vec<_> = ports(old).iter().map(node_port).collect();
        if ports(service).iter().map(node_port).eq(same) {
            let own = service.pointer_mut("/spec/ports").and_then(Value::as_array_mut);
            own.into_iter().flatten().for_each(|port| object::set_field(port, "nodePort", None));
        }
    }
    for field in FIELDS {
        let same = service["spec"].get(field) == old["spec"].get(field);
        if needs(old, field) && !needs(service, field) && same {
            object::set_field(&mut service["spec"], field, None);
        }
    }
}

const FIELDS: [&str; 5] = [
    "healthCheckNodePort",
    "allocateLoadBalancerNodePorts",
    "loadBalancerClass",
    "externalTrafficPolicy",
    "internalTrafficPolicy",
];

fn needs(service: &Value, field: &str) -> bool {
    match field {
        "healthCheckNodePort" => is_checked(service),
        "externalTrafficPolicy" => is_external(service),
        "internalTrafficPolicy" => is_addressed(service),
        _ => is_balanced(service),
    }
}

/// Whether traffic from outside reaches the service.
pub(super) fn is_external(service: &Value) -> bool {
    let own = service.pointer("/spec/externalIPs").and_then(Value::as_array);
    matches!(kind(service), "NodePort" | "LoadBalancer")
        || kind(service) == "ClusterIP" && own.is_some_and(|own| !own.is_empty())
}

/// Whether the service has an address of its own, or at least could.
pub(super) fn is_addressed(service: &Value) -> bool {
    matches!(kind(service), "ClusterIP" | "NodePort" | "LoadBalancer")
}

pub(super) fn is_balanced(service: &Value) -> bool {
    kind(service) == "LoadBalancer"
}

fn is_on_nodes(service: &Value) -> bool {
    let wanted = service.pointer("/spec/allocateLoadBalancerNodePorts") != Some(&Value::Bool(false));
    kind(service) == "NodePort" || is_balanced(service) && wanted
}

/// Whether balancers ask nodes if the service runs there.
fn is_checked(service: &Value) -> bool {
    is_balanced(service)
        && service.pointer("/spec/externalTrafficPolicy").is_some_and(|policy| policy == "Local")
}

fn kind(service: &Value) -> &str {
    service.pointer("/spec/type").and_then(Value::as_str).unwrap_or_default()
}

fn ports(service: &Value) -> &[Value] {
    service.pointer("/spec/ports").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn node_port(port: &Value) -> Option<u64> {
    port.as_object()
        .and_then(|port: &Map<String, Value>| port.get("nodePort")?.as_u64())
        .filter(|number| *number > 0)
}

/// What tells the ports of a service apart.
fn address(port: &Value) -> (Option<Value>, Option<Value>) {
    (port.get("port").cloned(), port.get("protocol").cloned())
}

/// The numbers that a service does not have yet.
struct Free {
    taken: HashSet<u64>,
    start: u32,
    /// Numbers that were looked at from the start on: none of them is free.
    steps: u32,
}

impl Free {
    fn beside(ports: &[Value], uid: &str) -> Self {
        let taken = ports.iter().filter_map(node_port).collect();
        Self { taken, start: super::allotment::hash(uid) % COUNT, steps: 0 }
    }

    /// Whether the number was free.
    fn take(&mut self, number: u64) -> bool {
        self.taken.insert(number)
    }

    /// The next number from a start that depends on the service; the first of all where none is left.
    fn next(&mut self) -> u64 {
        while self.steps < COUNT {
            let number = u64::from(FIRST + (self.start + self.steps) % COUNT);
            self.steps += 1;
            if self.take(number) {
                return number;
            }
        }
        u64::from(FIRST)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ports_on_nodes_come_and_go_with_the_type() {
        let mut service = json!({"metadata": {"uid": "u"}, "spec": {"type": "NodePort", "ports": [
            {"port": 80, "protocol": "TCP"}, {"port": 81, "protocol": "TCP"}]}});
        give(&mut service, None);
        let numbers: Vec<u64> = ports(&service).iter().filter_map(node_port).collect();
        assert!(numbers[0] != numbers[1] && numbers.iter().all(|number| (30_000..=32_767).contains(number)));
        let mut kept = json!({"metadata": {"uid": "u"}, "spec": {"type": "NodePort", "ports": [
            {"port": 81, "protocol": "TCP"}]}});
        give(&mut kept, Some(&service));
        assert_eq!(node_port(&kept["spec"]["ports"][0]), Some(numbers[1]));
        let mut inner = service.clone();
        inner["spec"]["type"] = "ClusterIP".into();
        withdraw(&mut inner, &service);
        assert_eq!(node_port(&inner["spec"]["ports"][0]), None);
    }
}
