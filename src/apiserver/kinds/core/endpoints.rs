//! Endpoints: addresses of either family in any spelling, and ports. Subsets that a change leaves alone may be wrong.

use std::collections::HashSet;

use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::labels;
use admit_apimachinery::names::NameRule;
use serde_json::Value;

use crate::kinds::field::Field;
use crate::kinds::shared::network;
use crate::kinds::{Habit, Strategy};
use crate::object;

pub(super) const STRATEGY: Strategy = Strategy {
    kind: "Endpoints",
    habits: &[Habit::CreatedByUpdate, Habit::ObjectAgain],
    validate: Some(validate),
    validate_update: Some(validate_update),
    warnings: Some(warnings),
    ..Strategy::PLAIN
};

const LISTS: [&str; 2] = ["addresses", "notReadyAddresses"];

fn warnings(object: &Value, _: Option<&Value>) -> Vec<String> {
    // Those that the controller writes are known to be well written.
    let managed = object::meta_map(object, "labels").any(|(label, writer)| {
        label == "endpoints.kubernetes.io/managed-by" && writer == "endpoint-controller"
    });
    let mut warnings = Vec::new();
    let subsets = Field::root(object).get("subsets");
    for subset in subsets.items().filter(|_| !managed) {
        for list in LISTS {
            let addresses = subset.get(list);
            warnings.extend(addresses.items().filter_map(|one| network::address_warning(&one.get("ip"))));
        }
    }
    warnings
}

fn validate(object: &Value, errors: &mut FieldErrors) {
    subsets(&Field::root(object).get("subsets"), &HashSet::new(), errors);
}

fn validate_update(object: &Value, old: &Value, errors: &mut FieldErrors) {
    let (own, before) = (Field::root(object).get("subsets"), Field::root(old).get("subsets"));
    if own.value() == before.value() {
        return;
    }
    let mut kept = HashSet::new();
    for subset in before.items() {
        for list in LISTS {
            kept.extend(subset.get(list).items().map(|address| address.get("ip").text()));
        }
    }
    subsets(&own, &kept, errors);
}

/// `kept` are addresses that were there before.
fn subsets(subsets: &Field<'_>, kept: &HashSet<&str>, errors: &mut FieldErrors) {
    for subset in subsets.items() {
        if LISTS.iter().all(|&list| subset.get(list).is_empty()) {
            errors.add(|| subset.required("must specify `addresses` or `notReadyAddresses`"));
        }
        for list in LISTS {
            for address in subset.get(list).items() {
                self::address(&address, kept, errors);
            }
        }
        let ports = subset.get("ports");
        for port in ports.items() {
            self::port(&port, ports.len() > 1, errors);
        }
    }
}

fn address(address: &Field<'_>, kept: &HashSet<&str>, errors: &mut FieldErrors) {
    let (ip, host, node) = (address.get("ip"), address.get("hostname"), address.get("nodeName"));
    if !kept.contains(ip.text()) {
        network::legacy_address(&ip, errors);
    }
    if !host.is_empty() {
        host.named(NameRule::Label, errors);
    }
    if node.is_set() {
        node.named(NameRule::Subdomain, errors);
    }
    let problem = match network::parse_address(ip.text()) {
        Some(parsed) => network::unusable(parsed, ip.text()),
        None => Some("must be a valid IP address".to_owned()),
    };
    if let Some(problem) = problem {
        errors.add(|| ip.invalid(problem));
    }
}

fn port(port: &Field<'_>, several: bool, errors: &mut FieldErrors) {
    let (name, protocol, spoken) = (port.get("name"), port.get("protocol"), port.get("appProtocol"));
    if several && name.is_empty() {
        errors.add(|| name.required(""));
    } else if !name.is_empty() {
        name.named(NameRule::Label, errors);
    }
    network::port_number(&port.get("port"), errors);
    if protocol.is_empty() {
        errors.add(|| protocol.required(""));
    } else {
        protocol.one_of(&["SCTP", "TCP", "UDP"], errors);
    }
    if spoken.is_set() {
        spoken.problems(labels::key(spoken.text()), errors);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::tests::told;

    #[test]
    fn what_is_left_alone_may_be_wrong() {
        let object = json!({"subsets": [{"addresses": [{"ip": "127.0.0.1"}, {"ip": "010.0.0.1"}],
            "ports": [{"port": 0, "protocol": "TCP"}]}]});
        assert_eq!(
            told(&STRATEGY, &object, None),
            [
                "subsets[0].addresses[0].ip: Invalid value: \"127.0.0.1\": may not be in the loopback range (127.0.0.0/8, \
                 ::1/128)",
                "subsets[0].addresses[1].ip: Invalid value: \"010.0.0.1\": must not have leading 0s",
                "subsets[0].ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
            ]
        );
        assert_eq!(told(&STRATEGY, &object, Some(&object)), Vec::<String>::new());
        let mut changed = object.clone();
        changed["subsets"][0]["ports"] = json!([]);
        assert_eq!(told(&STRATEGY, &changed, Some(&object)).len(), 1);
        assert_eq!(
            warnings(&object, None),
            [
                "subsets[0].addresses[1].ip: non-standard IP address \"010.0.0.1\" will be considered invalid in a future \
              Kubernetes release: use \"10.0.0.1\""
            ]
        );
    }
}
