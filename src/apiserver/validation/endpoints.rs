//! Endpoints: addresses of either family in any form, and ports.

use admit_apimachinery::{labels, names::NameRule};
use serde_json::Value;

use super::{items, one_of, text};
use crate::kinds::shared::network::{Spelling, address_problems, parse_address, unusable};
use crate::status::{Cause, Causes};

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

pub(super) fn endpoints(object: &Value) -> Causes {
    let mut causes = Causes::default();
    for (at, subset) in items(object, "subsets").iter().enumerate() {
        let path = format!("subsets[{at}]");
        let lists = ["addresses", "notReadyAddresses"];
        if lists.iter().all(|list| items(subset, list).is_empty()) {
            causes.push(Cause::required(path.as_str(), "must specify `addresses` or `notReadyAddresses`"));
        }
        for list in lists {
            for (at, address) in items(subset, list).iter().enumerate() {
                causes.extend(old_address(address, &format!("{path}.{list}[{at}]")));
            }
        }
        let ports = items(subset, "ports");
        for (at, port) in ports.iter().enumerate() {
            causes.extend(old_port(port, ports.len() > 1, &format!("{path}.ports[{at}]")));
        }
    }
    causes
}

fn old_address(address: &Value, path: &str) -> Causes {
    let mut causes = match text(address, "hostname") {
        "" => Causes::default(),
        _ => named(address, path, "hostname", NameRule::Label),
    };
    causes.extend(named(address, path, "nodeName", NameRule::Subdomain));
    let field = format!("{path}.ip");
    let written = text(address, "ip");
    let unusable = match parse_address(written) {
        Some(ip) => unusable(ip, written),
        None => Some("must be a valid IP address".to_owned()),
    };
    let problems = address_problems(written, Spelling::Any).into_iter().chain(unusable);
    causes.extend(problems.map(|why| Cause::invalid(field.as_str(), &written.into(), &why)));
    causes
}

fn old_port(port: &Value, several: bool, path: &str) -> Causes {
    let mut causes = match text(port, "name") {
        "" if several => Causes::from(Cause::required(format!("{path}.name"), "")),
        "" => Causes::default(),
        _ => named(port, path, "name", NameRule::Label),
    };
    let number = port.get("port").and_then(Value::as_i64).unwrap_or(0);
    if !(1..=65_535).contains(&number) {
        let why = "must be between 1 and 65535, inclusive";
        causes.push(Cause::invalid(format!("{path}.port"), &number.into(), why));
    }
    causes.extend(one_of(port, path, "protocol", &PROTOCOLS));
    causes.extend(app_protocol(port, path));
    causes
}

fn app_protocol(port: &Value, path: &str) -> Causes {
    let Some(given) = port.get("appProtocol").filter(|given| given.is_string()) else {
        return Causes::default();
    };
    let problems = labels::key(given.as_str().unwrap_or_default());
    problems.iter().map(|why| Cause::invalid(format!("{path}.appProtocol"), given, why)).collect()
}

/// What is wrong with a name that is given, be it empty.
fn named(object: &Value, path: &str, field: &str, rule: NameRule) -> Causes {
    let Some(given) = object.get(field).filter(|given| given.is_string()) else { return Causes::default() };
    let problems = rule.problems(given.as_str().unwrap_or_default(), false);
    problems.iter().map(|why| Cause::invalid(format!("{path}.{field}"), given, why)).collect()
}
