//! Node ports of Services, and other fields that only some types of Services have: drawn when the type needs them, kept
//! while it does, and removed with it (`initNodePorts` and `updateNodePorts` of pkg/registry/core/service/storage/alloc.go).

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use crate::object;

/// The ports on nodes that a cluster has.
pub(crate) const ON_NODES: std::ops::RangeInclusive<i64> = 30_000..=32_767;

/// Who has the ports that are free.
pub(crate) trait Draw {
    /// Whether it could be taken if it was free.
    fn reaches(&self, number: i64) -> bool;
    /// Takes this one; whether it was free.
    fn take(&mut self, number: i64) -> bool;
    /// Takes any; none where none is left.
    fn next(&mut self) -> Option<i64>;
}

/// Why a service does not get its ports on nodes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NoPort {
    /// The number that the port at this place asks for is taken.
    Taken { at: usize, number: i64 },
    /// The number that the port at this place asks for is not one of those that the cluster has.
    Outside { at: usize, number: i64 },
    /// A changed service asks twice for one port with one protocol.
    Twice { protocol: String, number: i64 },
    /// There is none left.
    Left,
    /// The number by which balancers are to ask is taken.
    CheckTaken(i64),
    /// There is none left by which balancers could ask.
    CheckLeft,
}

/// Keeps the ports of a changed service that it does not speak of. Ports are told apart by their names.
pub(super) fn keep(service: &mut Value, old: &Value) {
    if is_on_nodes(service) && is_on_nodes(old) {
        // Of two the last is meant, also where it has no number.
        let held: HashMap<String, Option<i64>> =
            ports(old).iter().map(|port| (name(port).to_owned(), node_port(port))).collect();
        let before: HashSet<i64> = ports(old).iter().filter_map(node_port).collect();
        let used: HashSet<i64> =
            ports(service).iter().filter_map(node_port).filter(|number| before.contains(number)).collect();
        let unsaid = service.pointer_mut("/spec/ports").and_then(Value::as_array_mut);
        for port in unsaid.into_iter().flatten().filter(|port| node_port(port).is_none()) {
            let kept = held.get(name(port)).copied().flatten().filter(|number| !used.contains(number));
            if let Some(number) = kept {
                object::set_field(port, "nodePort", Some(number.into()));
            }
        }
    }
    if is_checked(service) && is_checked(old) && check(service).is_none() {
        object::set_field(&mut service["spec"], CHECK, old.pointer("/spec/healthCheckNodePort").cloned());
    }
}

/// Draws the ports of a new service, or those that a changed one did not have before.
///
/// # Errors
/// When one that is asked for is taken, or none is left; some may have been drawn then.
pub(crate) fn allot(service: &mut Value, old: Option<&Value>, draw: &mut dyn Draw) -> Result<(), NoPort> {
    if matches!(kind(service), "NodePort" | "LoadBalancer") {
        match old {
            None => allot_new(service, draw)?,
            Some(old) => allot_changed(service, old, draw)?,
        }
    }
    if !is_checked(service) || old.is_some_and(is_checked) {
        return Ok(());
    }
    match check(service) {
        Some(number) if draw.reaches(number) && draw.take(number) => Ok(()),
        Some(number) => Err(NoPort::CheckTaken(number)),
        None => {
            let number = draw.next().ok_or(NoPort::CheckLeft)?;
            object::set_field(&mut service["spec"], CHECK, Some(number.into()));
            Ok(())
        }
    }
}

/// Ports of one number share one on the nodes, unless they ask for several.
fn allot_new(service: &mut Value, draw: &mut dyn Draw) -> Result<(), NoPort> {
    let wanted = is_on_nodes(service);
    let mut asked: HashMap<Option<i64>, i64> = HashMap::new();
    for port in ports(service) {
        if let Some(number) = node_port(port) {
            asked.entry(number_of(port)).or_insert(number);
        }
    }
    let mut given: HashMap<Option<i64>, i64> = HashMap::new();
    let own = service.pointer_mut("/spec/ports").and_then(Value::as_array_mut);
    for (at, port) in own.into_iter().flatten().enumerate() {
        let (own, shared) = (node_port(port), number_of(port));
        if own.is_none() && !wanted {
            continue;
        }
        let number = match (given.get(&shared), own) {
            (Some(number), None) => *number,
            (Some(number), Some(own)) if *number == own => own,
            (Some(_), Some(own)) => taken(draw, at, own)?,
            (None, _) => {
                let number = match asked.get(&shared) {
                    Some(number) => taken(draw, at, *number)?,
                    None => draw.next().ok_or(NoPort::Left)?,
                };
                given.insert(shared, number);
                number
            }
        };
        object::set_field(port, "nodePort", Some(number.into()));
    }
    Ok(())
}

fn allot_changed(service: &mut Value, old: &Value, draw: &mut dyn Draw) -> Result<(), NoPort> {
    let wanted = is_on_nodes(service);
    let mut held: HashSet<i64> = ports(old).iter().filter_map(node_port).collect();
    let mut own_ports = HashSet::new();
    let own = service.pointer_mut("/spec/ports").and_then(Value::as_array_mut);
    for (at, port) in own.into_iter().flatten().enumerate() {
        let number = match node_port(port) {
            Some(number) => {
                if held.insert(number) {
                    taken(draw, at, number)?;
                }
                number
            }
            None if wanted => {
                let number = draw.next().ok_or(NoPort::Left)?;
                object::set_field(port, "nodePort", Some(number.into()));
                number
            }
            None => continue,
        };
        let protocol = port.get("protocol").and_then(Value::as_str).unwrap_or_default();
        if !own_ports.insert((protocol.to_owned(), number)) {
            return Err(NoPort::Twice { protocol: protocol.to_owned(), number });
        }
    }
    Ok(())
}

fn taken(draw: &mut dyn Draw, at: usize, number: i64) -> Result<i64, NoPort> {
    if !draw.reaches(number) {
        Err(NoPort::Outside { at, number })
    } else if draw.take(number) {
        Ok(number)
    } else {
        Err(NoPort::Taken { at, number })
    }
}

/// The ports on nodes that the service has.
pub(crate) fn held(service: &Value) -> HashSet<i64> {
    let checked = check(service).filter(|_| is_checked(service));
    ports(service).iter().filter_map(node_port).chain(checked).collect()
}

/// Takes from a changed service what only its former type had, unless the change speaks of it.
pub(super) fn withdraw(service: &mut Value, old: &Value) {
    if may_be_on_nodes(old) && !may_be_on_nodes(service) {
        // A change that names no new one does not speak of them.
        let before: HashSet<i64> = ports(old).iter().filter_map(node_port).collect();
        if ports(service).iter().filter_map(node_port).all(|number| before.contains(&number)) {
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

const CHECK: &str = "healthCheckNodePort";

const FIELDS: [&str; 5] = [
    CHECK,
    "allocateLoadBalancerNodePorts",
    "loadBalancerClass",
    "externalTrafficPolicy",
    "internalTrafficPolicy",
];

fn needs(service: &Value, field: &str) -> bool {
    match field {
        CHECK => is_checked(service),
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

/// Whether the type is one that has ports on nodes.
fn may_be_on_nodes(service: &Value) -> bool {
    matches!(kind(service), "NodePort" | "LoadBalancer")
}

/// Whether the service gets ports on nodes that it does not ask for.
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

fn node_port(port: &Value) -> Option<i64> {
    port.as_object()
        .and_then(|port: &Map<String, Value>| port.get("nodePort")?.as_i64())
        .filter(|number| *number != 0)
}

fn name(port: &Value) -> &str {
    port.get("name").and_then(Value::as_str).unwrap_or_default()
}

/// The number of a port inside the cluster.
fn number_of(port: &Value) -> Option<i64> {
    port.get("port").and_then(Value::as_i64)
}

/// The port by which balancers ask nodes.
fn check(service: &Value) -> Option<i64> {
    service.pointer("/spec/healthCheckNodePort").and_then(Value::as_i64).filter(|number| *number != 0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Gives one after the other.
    #[derive(Default)]
    struct Row(HashSet<i64>);

    impl Draw for Row {
        fn reaches(&self, number: i64) -> bool {
            ON_NODES.contains(&number)
        }

        fn take(&mut self, number: i64) -> bool {
            self.0.insert(number)
        }

        fn next(&mut self) -> Option<i64> {
            ON_NODES.take(4).find(|number| self.take(*number))
        }
    }

    fn service(kind: &str, ports: &[(i64, &str, Option<i64>)]) -> Value {
        let port = |(port, protocol, on_nodes): &(i64, &str, Option<i64>)| {
            let mut port = json!({"name": format!("p{port}"), "port": port, "protocol": protocol});
            if let Some(number) = on_nodes {
                port["nodePort"] = (*number).into();
            }
            port
        };
        let ports: Vec<_> = ports.iter().map(port).collect();
        json!({"spec": {"type": kind, "ports": ports}})
    }

    fn numbers(service: &Value) -> Vec<Option<i64>> {
        ports(service).iter().map(node_port).collect()
    }

    #[test]
    fn ports_on_nodes_come_and_go_with_the_type() {
        let mut row = Row::default();
        let mut two = service("NodePort", &[(80, "TCP", None), (81, "TCP", None)]);
        allot(&mut two, None, &mut row).unwrap();
        assert_eq!(numbers(&two), [Some(30_000), Some(30_001)]);
        let mut kept = service("NodePort", &[(81, "TCP", None), (82, "TCP", None)]);
        keep(&mut kept, &two);
        assert_eq!(numbers(&kept), [Some(30_001), None]);
        allot(&mut kept, Some(&two), &mut row).unwrap();
        assert_eq!(numbers(&kept), [Some(30_001), Some(30_002)]);
        let mut inner = two.clone();
        inner["spec"]["type"] = "ClusterIP".into();
        withdraw(&mut inner, &two);
        assert_eq!(numbers(&inner), [None, None]);
        assert!(held(&inner).is_empty());
    }

    #[test]
    fn ports_are_kept_by_their_names() {
        let mut old = service("NodePort", &[(80, "TCP", Some(30_000)), (81, "TCP", Some(30_001))]);
        let mut swapped = service("NodePort", &[(81, "TCP", None), (80, "TCP", None)]);
        swapped["spec"]["ports"][0]["name"] = "p80".into();
        swapped["spec"]["ports"][1]["name"] = "p81".into();
        keep(&mut swapped, &old);
        assert_eq!(numbers(&swapped), [Some(30_000), Some(30_001)]);
        // What is no longer given of itself is kept all the same.
        old["spec"]["type"] = "LoadBalancer".into();
        let mut bare = old.clone();
        bare["spec"]["allocateLoadBalancerNodePorts"] = false.into();
        withdraw(&mut bare, &old);
        assert_eq!(numbers(&bare), [Some(30_000), Some(30_001)]);
    }

    #[test]
    fn no_port_is_asked_for_twice_or_outside() {
        let old = service("NodePort", &[(80, "TCP", Some(30_000))]);
        let mut row = Row::default();
        let mut twice = service("NodePort", &[(80, "TCP", Some(30_000)), (81, "TCP", Some(30_000))]);
        let refused = Err(NoPort::Twice { protocol: "TCP".into(), number: 30_000 });
        assert_eq!(allot(&mut twice, Some(&old), &mut row), refused);
        for number in [-1, 80] {
            let mut outside = service("NodePort", &[(80, "TCP", Some(number))]);
            assert_eq!(allot(&mut outside, None, &mut row), Err(NoPort::Outside { at: 0, number }));
        }
    }

    #[test]
    fn protocols_of_one_port_share_one_on_the_nodes() {
        let mut shared = service("NodePort", &[(53, "TCP", None), (53, "UDP", Some(30_002))]);
        let mut row = Row::default();
        allot(&mut shared, None, &mut row).unwrap();
        assert_eq!(numbers(&shared), [Some(30_002), Some(30_002)]);
        assert_eq!(row.0, HashSet::from([30_002]));
        let mut apart = service("NodePort", &[(53, "TCP", Some(30_001)), (53, "UDP", Some(30_002))]);
        assert_eq!(allot(&mut apart, None, &mut row), Err(NoPort::Taken { at: 1, number: 30_002 }));
    }

    #[test]
    fn what_is_taken_or_used_up_is_told() {
        let mut row = Row(HashSet::from([30_000]));
        let mut asks = service("NodePort", &[(80, "TCP", Some(30_000))]);
        assert_eq!(allot(&mut asks, None, &mut row), Err(NoPort::Taken { at: 0, number: 30_000 }));
        let mut changed = service("NodePort", &[(80, "TCP", Some(30_000)), (81, "TCP", Some(30_001))]);
        let old = service("NodePort", &[(80, "TCP", Some(30_000))]);
        assert_eq!(allot(&mut changed, Some(&old), &mut row), Ok(()));
        let ports: Vec<_> = (1..4).map(|port| (port, "TCP", None)).collect();
        assert_eq!(allot(&mut service("LoadBalancer", &ports), None, &mut row), Err(NoPort::Left));
    }

    #[test]
    fn balancers_ask_by_a_port_of_its_own() {
        let mut row = Row::default();
        let mut own = service("LoadBalancer", &[(80, "TCP", None)]);
        own["spec"]["externalTrafficPolicy"] = "Local".into();
        allot(&mut own, None, &mut row).unwrap();
        assert_eq!(held(&own), HashSet::from([30_000, 30_001]));
        let mut asks = own.clone();
        asks["spec"]["ports"] = json!([]);
        assert_eq!(allot(&mut asks, None, &mut row), Err(NoPort::CheckTaken(30_001)));
        let mut kept = service("LoadBalancer", &[(80, "TCP", None)]);
        kept["spec"]["externalTrafficPolicy"] = "Local".into();
        keep(&mut kept, &own);
        assert_eq!(held(&kept), held(&own));
    }
}
