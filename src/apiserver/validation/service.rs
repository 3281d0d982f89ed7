//! Services: their type and ports.

use admit_apimachinery::names::NameRule;
use std::collections::HashSet;

use serde_json::{Value, json};

use super::{items, label_pairs, one_of, text, texts_of};
use crate::status::{Cause, Causes};

const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const OFF_NODES: &str = "provided port is not in the valid range. The range of valid ports is 30000-32767";
const RANGE: &str = "must be between 1 and 65535, inclusive";

pub(super) fn service(object: &Value) -> Causes {
    let spec = object.get("spec").unwrap_or(&Value::Null);
    let ports = items(spec, "ports");
    let mut causes = Causes::default();
    let (kind, headless) = (text(spec, "type"), text(spec, "clusterIP") == "None");
    if ports.is_empty() && !headless && kind != "ExternalName" {
        causes.push(Cause::required("spec.ports", ""));
    }
    match kind {
        "ExternalName" if text(spec, "externalName").is_empty() => {
            causes.push(Cause::required("spec.externalName", ""));
        }
        "ExternalName" => {
            let name = text(spec, "externalName").trim_end_matches('.');
            let problems = NameRule::Subdomain.problems(name, false);
            causes.extend(problems.iter().map(|why| Cause::invalid("spec.externalName", &name.into(), why)));
        }
        "LoadBalancer" | "NodePort" if headless => {
            let why = format!("may not be set to 'None' for {kind} services");
            causes.push(Cause::invalid("spec.clusterIPs[0]", &"None".into(), &why));
        }
        _ => {}
    }
    let mut earlier = HashSet::new();
    for (at, port) in ports.iter().enumerate() {
        causes.extend(self::port(port, &earlier, &format!("spec.ports[{at}]"), ports.len() > 1));
        earlier.insert(text(port, "name"));
    }
    causes.extend(selector(spec));
    causes.extend(on_nodes(kind, ports));
    causes.extend(one_of(spec, "spec", "sessionAffinity", &["ClientIP", "None"]));
    causes.extend(one_of(spec, "spec", "type", &TYPES));
    let mut taken = HashSet::new();
    for (at, port) in ports.iter().enumerate() {
        if !taken.insert((text(port, "protocol"), port.get("port"))) {
            let shown = json!({"port": port.get("port"), "protocol": text(port, "protocol")});
            causes.push(Cause::duplicate(format!("spec.ports[{at}]"), &shown));
        }
    }
    causes
}

/// What of a Service may not change: the address that it has.
pub(super) fn changed(object: &Value, old: &Value) -> Option<Cause> {
    let of =
        |object: &Value, field: &str| object.pointer(&format!("/spec/{field}")).cloned().unwrap_or_default();
    let addresses = |object: &Value| of(object, "clusterIPs");
    if [object, old].iter().any(|service| of(service, "type") == "ExternalName") {
        return None;
    }
    let (own, before) = (addresses(object), addresses(old));
    match (own.get(0), before.get(0)) {
        (_, None) => None,
        (Some(own), Some(before)) if own == before => None,
        (None, Some(_)) => {
            Some(Cause::invalid("spec.clusterIPs[0]", &own, "primary clusterIP can not be unset"))
        }
        _ => Some(Cause::invalid("spec.clusterIPs[0]", &own, "may not change once set")),
    }
}

/// `earlier` are the names of the ports before it.
fn port(port: &Value, earlier: &HashSet<&str>, path: &str, several: bool) -> Causes {
    let mut causes = Causes::default();
    let at = |field: &str| format!("{path}.{field}");
    match text(port, "name") {
        "" if several => causes.push(Cause::required(at("name"), "")),
        "" => {}
        name => {
            let problems = NameRule::Label.problems(name, false);
            causes.extend(problems.iter().map(|why| Cause::invalid(at("name"), &name.into(), why)));
            if problems.is_empty() && earlier.contains(name) {
                causes.push(Cause::duplicate(at("name"), &name.into()));
            }
        }
    }
    let in_range = |number: i64| (1..=65535).contains(&number);
    let number = port.get("port").and_then(Value::as_i64).unwrap_or(0);
    if !in_range(number) {
        causes.push(Cause::invalid(at("port"), &number.into(), RANGE));
    }
    match text(port, "protocol") {
        "" => causes.push(Cause::required(at("protocol"), "")),
        _ => causes.extend(one_of(port, path, "protocol", &PROTOCOLS)),
    }
    if let Some(number) = port.get("targetPort").and_then(Value::as_i64).filter(|number| !in_range(*number)) {
        causes.push(Cause::invalid(at("targetPort"), &number.into(), RANGE));
    }
    match text(port, "targetPort") {
        "" => {}
        name => {
            let problems = port_name_problems(name);
            causes
                .extend(problems.into_iter().map(|why| Cause::invalid(at("targetPort"), &name.into(), why)));
        }
    }
    causes
}

/// What is wrong with the name that a container gives a port.
fn port_name_problems(name: &str) -> Vec<&'static str> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let rules = [
        (name.len() > 15, "must be no more than 15 characters"),
        (!name.chars().all(plain), "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"),
        (!name.contains(|c: char| c.is_ascii_lowercase()), "must contain at least one letter (a-z)"),
        (name.contains("--"), "must not contain consecutive hyphens"),
        (name.starts_with('-') || name.ends_with('-'), "must not begin or end with a hyphen"),
    ];
    rules.into_iter().filter(|(broken, _)| *broken).map(|(_, why)| why).collect()
}

/// Ports on nodes are for services that are reached there, and lie in one range.
fn on_nodes(kind: &str, ports: &[Value]) -> Causes {
    let given = ports.iter().enumerate().filter_map(|(at, port)| {
        let number = port.get("nodePort").and_then(Value::as_i64).filter(|number| *number != 0)?;
        Some((format!("spec.ports[{at}].nodePort"), number))
    });
    given
        .filter_map(|(path, number)| match (kind, number) {
            ("ClusterIP", _) => Some(Cause::forbidden(path, "may not be used when `type` is 'ClusterIP'")),
            ("NodePort" | "LoadBalancer", 30_000..=32_767) => None,
            ("NodePort" | "LoadBalancer", _) => Some(Cause::invalid(path, &number.into(), OFF_NODES)),
            _ => None,
        })
        .collect()
}

fn selector(spec: &Value) -> Causes {
    label_pairs(texts_of(spec.get("selector")), "spec.selector")
}

#[test]
fn ports_have_numbers_and_names_of_their_own() {
    let object = json!({"spec": {"type": "Odd", "ports": [
        {"name": "a", "port": 80, "protocol": "TCP"}, {"name": "a", "port": 0, "protocol": "TCP", "targetPort": 70000},
        {"port": 80, "protocol": "TCP"}]}});
    let texts: Vec<String> = service(&object).iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "spec.ports[1].name: Duplicate value: \"a\"",
            "spec.ports[1].port: Invalid value: 0: must be between 1 and 65535, inclusive",
            "spec.ports[1].targetPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
            "spec.ports[2].name: Required value",
            "spec.type: Unsupported value: \"Odd\": supported values: \"ClusterIP\", \"ExternalName\", \"LoadBalancer\", \
             \"NodePort\"",
            "spec.ports[2]: Duplicate value: {\"port\":80,\"protocol\":\"TCP\"}"
        ]
    );
}
