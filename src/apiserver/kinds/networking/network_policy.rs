//! Defines the strategy of NetworkPolicies: allowed peers and ports of pods.

use std::collections::HashSet;

use admit_apimachinery::findings::FieldErrors;
use serde_json::{Value, json};

use crate::kinds::field::Field;
use crate::kinds::shared::label_selector::{self, LabelValues};
use crate::kinds::shared::network::{self, Network};
use crate::kinds::{Habit, Strategy};
use crate::object;

pub(super) const STRATEGY: Strategy = Strategy {
    kind: "NetworkPolicy",
    habits: &[Habit::CountsEmpty],
    default: Some(default),
    validate_create: Some(create),
    validate_update: Some(update),
    warnings: Some(warnings),
    ..Strategy::PLAIN
};

const TYPES: [&str; 2] = ["Ingress", "Egress"];
/// The list of rules for each direction, and the field for their peers.
const DIRECTIONS: [(&str, &str); 2] = [("ingress", "from"), ("egress", "to")];

fn default(_version: &str, policy: &mut Value) {
    let spec = object::member_mut(object::map_of(policy), "spec");
    // A policy without egress rules does not restrict egress.
    let leaves = spec.get("egress").and_then(Value::as_array).is_some_and(|rules| !rules.is_empty());
    let types = if leaves { json!(TYPES) } else { json!(["Ingress"]) };
    if spec.get("policyTypes").and_then(Value::as_array).is_none_or(Vec::is_empty) {
        spec.insert("policyTypes".to_owned(), types);
    }
    for (direction, _) in DIRECTIONS {
        let rules = spec.get_mut(direction).and_then(Value::as_array_mut).into_iter().flatten();
        let ports = rules.filter_map(|rule| rule.get_mut("ports").and_then(Value::as_array_mut)).flatten();
        for port in ports.filter(|port| port.get("protocol").is_none_or(Value::is_null)) {
            object::set_field(port, "protocol", Some("TCP".into()));
        }
    }
}

/// Values of the stored policy, which the new one may keep although they are invalid.
struct Known<'o> {
    networks: HashSet<&'o str>,
    values: LabelValues,
}

fn create(object: &Value, errors: &mut FieldErrors) {
    let known = Known { networks: HashSet::new(), values: LabelValues::Checked };
    spec(&Field::root(object).get("spec"), &known, errors);
}

fn update(object: &Value, old: &Value, errors: &mut FieldErrors) {
    let old = Field::root(old).get("spec");
    let mut broken = FieldErrors::default();
    label_selector::validate(&old.get("podSelector"), LabelValues::Checked, &mut broken);
    let values = if broken.is_empty() { LabelValues::Checked } else { LabelValues::Unchecked };
    let mut networks = HashSet::new();
    for block in blocks(&old) {
        networks.insert(block.get("cidr").text());
        networks.extend(block.get("except").texts());
    }
    spec(&Field::root(object).get("spec"), &Known { networks, values }, errors);
}

/// Returns the IP blocks of all peers.
fn blocks<'o>(spec: &Field<'o>) -> impl Iterator<Item = Field<'o>> + use<'o> {
    let spec = spec.clone();
    DIRECTIONS.into_iter().flat_map(move |(direction, peers)| {
        let rules = spec.get(direction).items();
        let peers = rules.flat_map(move |rule| rule.get(peers).items());
        peers.map(|peer| peer.get("ipBlock")).filter(Field::is_set)
    })
}

fn spec(spec: &Field<'_>, known: &Known<'_>, errors: &mut FieldErrors) {
    label_selector::validate(&spec.get("podSelector"), known.values, errors);
    for (direction, peers) in DIRECTIONS {
        for rule in spec.get(direction).items() {
            for port in rule.get("ports").items() {
                self::port(&port, errors);
            }
            for peer in rule.get(peers).items() {
                self::peer(&peer, known, errors);
            }
        }
    }
    let types = spec.get("policyTypes");
    if types.len() > TYPES.len() {
        return errors
            .add(|| types.invalid_as(types.shown_texts(), "may not specify more than two policyTypes"));
    }
    for kind in types.items().filter(|kind| !TYPES.contains(&kind.text())) {
        errors.add(|| kind.not_supported(&TYPES));
    }
}

fn port(rule: &Field<'_>, errors: &mut FieldErrors) {
    let (protocol, port, end) = (rule.get("protocol"), rule.get("port"), rule.get("endPort"));
    let protocols = ["TCP", "UDP", "SCTP"];
    if protocol.is_set() && !protocols.contains(&protocol.text()) {
        errors.add(|| protocol.not_supported(&protocols));
    }
    match (port.value(), end.integer()) {
        (Value::Null, Some(_)) => {
            errors.add(|| end.invalid("may not be specified when `port` is not specified"));
        }
        (Value::String(_), last) => {
            if last.is_some() {
                errors.add(|| end.invalid("may not be specified when `port` is non-numeric"));
            }
            network::port_name(&port, errors);
        }
        (Value::Number(_), last) => {
            network::port_number(&port, errors);
            let first = port.integer().unwrap_or(0);
            if last.is_some_and(|last| last < first) {
                // Upstream shows `port`, not `endPort`.
                errors.add(|| end.invalid_as(first, "must be greater than or equal to `port`"));
            }
            if last.is_some() {
                network::port_number(&end, errors);
            }
        }
        _ => {}
    }
}

fn peer(peer: &Field<'_>, known: &Known<'_>, errors: &mut FieldErrors) {
    let block = peer.get("ipBlock");
    let selectors = ["podSelector", "namespaceSelector"].map(|name| peer.get(name));
    for selector in &selectors {
        label_selector::validate(selector, known.values, errors);
    }
    if block.is_set() {
        self::block(&block, known, errors);
    }
    match (selectors.iter().any(Field::is_set), block.is_set()) {
        (false, false) => errors.add(|| peer.required("must specify a peer")),
        (true, true) => errors.add(|| peer.forbidden("may not specify both ipBlock and another peer")),
        _ => {}
    }
}

fn block(block: &Field<'_>, known: &Known<'_>, errors: &mut FieldErrors) {
    let check = |field: &Field<'_>, errors: &mut FieldErrors| {
        if !known.networks.contains(field.text()) {
            network::legacy_network(field, errors);
        }
    };
    let cidr = block.get("cidr");
    if cidr.text().is_empty() {
        return errors.add(|| cidr.required(""));
    }
    check(&cidr, errors);
    let Some(whole) = Network::parse(cidr.text()) else { return };
    for except in block.get("except").items() {
        check(&except, errors);
        if Network::parse(except.text()).is_some_and(|part| !whole.holds(&part)) {
            errors.add(|| except.invalid("must be a strict subset of `cidr`"));
        }
    }
}

fn warnings(object: &Value, _old: Option<&Value>) -> Vec<String> {
    let networks = blocks(&Field::root(object).get("spec"))
        .flat_map(|block| [block.get("cidr")].into_iter().chain(block.get("except").items()));
    networks.filter_map(|network| network::network_warning(&network)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::told;

    #[test]
    fn networks_that_are_stored_may_stay() {
        let policy = |cidr: &str, except: &str| json!({"spec": {"ingress": [{"from": [{"ipBlock": {"cidr": cidr, "except": [except]}}]}]}});
        let odd = policy("10.0.0.1/8", "10.1.0.0/16");
        let wrong = "Invalid value: \"10.0.0.1/8\": must not have bits set beyond the prefix length";
        assert_eq!(told(&STRATEGY, &odd, None), [format!("spec.ingress[0].from[0].ipBlock.cidr: {wrong}")]);
        assert!(told(&STRATEGY, &odd, Some(&odd)).is_empty());
        assert_eq!(warnings(&odd, None).len(), 1);
        assert_eq!(
            told(&STRATEGY, &policy("10.0.0.0/8", "11.0.0.0/16"), None),
            [
                "spec.ingress[0].from[0].ipBlock.except[0]: Invalid value: \"11.0.0.0/16\": must be a strict subset \
                 of `cidr`"
            ]
        );
    }

    #[test]
    fn the_last_port_needs_a_first_one() {
        let policy = json!({"spec": {"egress": [
            {"ports": [{"endPort": 5}], "to": [{"ipBlock": {}, "podSelector": {}}]}
        ]}});
        assert_eq!(
            told(&STRATEGY, &policy, None),
            [
                "spec.egress[0].ports[0].endPort: Invalid value: 5: may not be specified when `port` is not specified",
                "spec.egress[0].to[0].ipBlock.cidr: Required value",
                "spec.egress[0].to[0]: Forbidden: may not specify both ipBlock and another peer",
            ]
        );
    }
}
