//! The ports of a Service, and those on nodes.

use std::collections::HashSet;

use admit_apimachinery::field_error::FieldError;
use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::{labels, names};
use serde_json::{Value, json};

use super::kind;
use crate::kinds::field::Field;
use crate::kinds::shared::internal::as_it_stands;
use crate::kinds::shared::network;

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

pub(super) fn validate(ports: &Field<'_>, errors: &mut FieldErrors) {
    let mut names = HashSet::new();
    let several = ports.len() > 1;
    for port in ports.items() {
        named(&port.get("name"), several, &mut names, errors);
        network::port_number(&port.get("port"), errors);
        let protocol = port.get("protocol");
        if protocol.is_empty() {
            errors.add(|| protocol.required(""));
        } else {
            protocol.one_of(&PROTOCOLS, errors);
        }
        let target = port.get("targetPort");
        match target.value() {
            Value::String(_) => network::port_name(&target, errors),
            _ => network::port_number(&target, errors),
        }
        let spoken = port.get("appProtocol");
        if spoken.is_set() {
            spoken.problems(labels::key(spoken.text()), errors);
        }
    }
}

/// Each of several ports has a name of its own.
fn named<'o>(name: &Field<'o>, several: bool, names: &mut HashSet<&'o str>, errors: &mut FieldErrors) {
    if name.is_empty() {
        if several {
            errors.add(|| name.required(""));
        }
        return;
    }
    name.problems(names::dns1123_label(name.text()), errors);
    if !names.insert(name.text()) {
        errors.add(|| name.duplicate());
    }
}

/// Ports on nodes are for types that have them, and no port is there twice.
pub(super) fn apart(spec: &Field<'_>, errors: &mut FieldErrors) {
    let ports = spec.get("ports");
    let node_port = |port: &Field<'_>| port.get("nodePort").integer().unwrap_or_default();
    for port in ports.items().filter(|port| kind(spec) == "ClusterIP" && node_port(port) != 0) {
        errors.add(|| port.get("nodePort").forbidden("may not be used when `type` is 'ClusterIP'"));
    }
    let mut taken = HashSet::new();
    for port in ports.items().filter(|port| node_port(port) != 0) {
        if !taken.insert((port.get("protocol").text(), node_port(&port))) {
            errors.add(|| port.get("nodePort").duplicate());
        }
    }
    let mut taken = HashSet::new();
    for port in ports.items() {
        let number = port.get("port").integer().unwrap_or_default();
        if !taken.insert((port.get("protocol").text(), number)) {
            // Shown is what tells ports apart.
            errors.add(|| {
                let key = json!({"Name": "", "Protocol": port.get("protocol").text(), "AppProtocol": null,
                    "Port": number, "TargetPort": 0, "NodePort": 0});
                FieldError::duplicate(&port, as_it_stands(&key))
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(validate: fn(&Field<'_>, &mut FieldErrors), value: &Value) -> Vec<String> {
        let mut errors = FieldErrors::default();
        validate(&Field::root(value), &mut errors);
        errors.into_iter().map(|error| error.to_string()).collect()
    }

    #[test]
    fn ports_have_numbers_and_names_of_their_own() {
        let ports = json!([
            {"name": "a", "port": 80, "protocol": "TCP", "targetPort": 80},
            {"name": "a", "port": 0, "protocol": "TCP", "targetPort": 70000},
            {"port": 80, "protocol": "TCP", "targetPort": "a_b"}]);
        assert_eq!(
            told(validate, &ports),
            [
                "[1].name: Duplicate value: \"a\"",
                "[1].port: Invalid value: 0: must be between 1 and 65535, inclusive",
                "[1].targetPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
                "[2].name: Required value",
                "[2].targetPort: Invalid value: \"a_b\": must contain only alpha-numeric characters (a-z, 0-9), and \
                 hyphens (-)",
            ]
        );
    }

    #[test]
    fn ports_on_nodes_are_there_once() {
        let port =
            |number: u16, on_nodes: u16| json!({"port": number, "protocol": "TCP", "nodePort": on_nodes});
        let spec = |kind: &str, ports: &[Value]| json!({"type": kind, "ports": ports});
        assert_eq!(
            told(apart, &spec("NodePort", &[port(1, 30_000), port(2, 30_000)])),
            ["ports[1].nodePort: Duplicate value: 30000"]
        );
        assert_eq!(
            told(apart, &spec("ClusterIP", &[port(1, 30_000), port(1, 0)])),
            [
                "ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'",
                "ports[1]: Duplicate value: {\"Name\":\"\",\"Protocol\":\"TCP\",\"AppProtocol\":null,\"Port\":1,\
                 \"TargetPort\":0,\"NodePort\":0}",
            ]
        );
    }

    #[test]
    fn long_lists_of_ports_are_looked_through_once() {
        let port = |at: usize| {
            let number = at % 65_535 + 1;
            json!({"name": format!("p{at}"), "port": number, "protocol": "TCP", "targetPort": number})
        };
        let ports: Value = (0..65_000).map(port).collect();
        assert_eq!(told(validate, &ports), Vec::<String>::new());
        assert_eq!(told(apart, &json!({"type": "NodePort", "ports": ports})), Vec::<String>::new());
    }
}
