//! EndpointSlice: addresses of one family, in canonical form, and their ports.

use std::collections::{BTreeMap, HashSet};

use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::labels;
use admit_apimachinery::names::NameRule;
use serde_json::Value;

use crate::kinds::field::Field;
use crate::kinds::shared::network::{Spelling, address_problems, address_warning, parse_address, unusable};
use crate::kinds::{Habit, Strategy};
use crate::object;

pub(super) const STRATEGY: Strategy = Strategy {
    kind: "EndpointSlice",
    habits: &[Habit::ChangeOnce, Habit::ObjectAgain],
    default: Some(default),
    prepare_create: Some(|slice| drop_topology(slice, None)),
    prepare_update: Some(prepare_update),
    validate: Some(validate),
    validate_update: Some(update),
    warnings: Some(warnings),
    ..Strategy::PLAIN
};

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const ADDRESS_TYPES: [&str; 3] = ["FQDN", "IPv4", "IPv6"];
const HOST_LABEL: &str = "kubernetes.io/hostname";
const MOST_PORTS: i64 = 20_000;
const MOST_ENDPOINTS: i64 = 1_000;
const MOST_ADDRESSES: i64 = 100;
const MOST_HINTS: i64 = 8;

fn default(_version: &str, slice: &mut Value) {
    let ports = slice.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten();
    for port in ports.filter(|port| port.is_object()) {
        for (name, default) in [("name", ""), ("protocol", "TCP")] {
            if port.get(name).is_none_or(Value::is_null) {
                object::set_field(port, name, Some(default.into()));
            }
        }
    }
}

/// Who writes slices that are known to be well written, as a label tells.
const WRITERS: [&str; 2] = ["endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"];

fn warnings(slice: &Value, old: Option<&Value>) -> Vec<String> {
    let mut warnings = Vec::new();
    let root = Field::root(slice);
    if old.is_none() && root.get("addressType").text() == "FQDN" {
        warnings.push("spec.addressType: FQDN endpoints are deprecated".to_owned());
    }
    let managed = object::meta_map(slice, "labels").any(|(label, writer)| {
        label == "endpointslice.kubernetes.io/managed-by" && WRITERS.contains(&writer)
    });
    if !managed {
        let endpoints = root.get("endpoints");
        for endpoint in endpoints.items() {
            let addresses = endpoint.get("addresses");
            warnings.extend(addresses.items().filter_map(|address| address_warning(&address)));
        }
    }
    warnings
}

/// Labels count as changes of a slice, and so does a topology, although it goes.
fn prepare_update(slice: &mut Value, old: &Value) {
    fn labels(object: &Value) -> BTreeMap<&str, &str> {
        object::meta_map(object, "labels").collect()
    }
    let names_topology = slice.get("endpoints") != old.get("endpoints")
        && Field::root(slice).get("endpoints").items().any(|one| !one.get("deprecatedTopology").is_empty());
    if names_topology || labels(slice) != labels(old) {
        let generation = object::generation(old).saturating_add(1);
        object::set_meta(slice, "generation", Some(generation.into()));
    }
    drop_topology(slice, Some(old));
}

/// The topology went with `v1`. A node that was named only there may be named again by those who write an old slice.
fn drop_topology(slice: &mut Value, old: Option<&Value>) {
    if old.is_some_and(|old| old.get("endpoints") == slice.get("endpoints")) {
        return;
    }
    let host_of = |endpoint: &Value| {
        let host = endpoint.get("deprecatedTopology").and_then(|labels| labels.get(HOST_LABEL));
        host.and_then(Value::as_str).map(str::to_owned)
    };
    let before = old.and_then(|old| old.get("endpoints")).and_then(Value::as_array).into_iter().flatten();
    let known: HashSet<String> = before.filter_map(host_of).collect();
    let endpoints = slice.get_mut("endpoints").and_then(Value::as_array_mut).into_iter().flatten();
    for endpoint in endpoints.filter(|endpoint| endpoint.is_object()) {
        let host = host_of(endpoint)
            .filter(|host| known.contains(host) && NameRule::Subdomain.problems(host, false).is_empty());
        if let (Some(host), true) = (host, endpoint.get("nodeName").is_none_or(Value::is_null)) {
            object::set_field(endpoint, "nodeName", Some(host.into()));
        }
        object::set_field(endpoint, "deprecatedTopology", None);
    }
}

fn validate(object: &Value, errors: &mut FieldErrors) {
    attributes(object, errors);
    endpoints(object, errors);
}

fn attributes(object: &Value, errors: &mut FieldErrors) {
    let slice = Field::root(object);
    let kind = slice.get("addressType");
    if kind.text().is_empty() {
        errors.add(|| kind.required(""));
    }
    kind.one_of(&ADDRESS_TYPES, errors);
    ports(&slice.get("ports"), errors);
}

fn endpoints(object: &Value, errors: &mut FieldErrors) {
    let slice = Field::root(object);
    let (kind, endpoints) = (slice.get("addressType"), slice.get("endpoints"));
    if has_more(&endpoints, MOST_ENDPOINTS) {
        errors.add(|| endpoints.too_many(MOST_ENDPOINTS));
    } else {
        for endpoint in endpoints.items() {
            self::endpoint(&endpoint, kind.text(), errors);
        }
    }
}

fn update(object: &Value, old: &Value, errors: &mut FieldErrors) {
    attributes(object, errors);
    // What older servers took stays valid until it is changed.
    if object.get("endpoints") != old.get("endpoints") {
        endpoints(object, errors);
    }
    let kind = |object| Field::root(object).get("addressType");
    kind(object).immutable(&kind(old), errors);
}

fn has_more(list: &Field<'_>, most: i64) -> bool {
    i64::try_from(list.len()).is_ok_and(|length| length > most)
}

fn endpoint(endpoint: &Field<'_>, kind: &str, errors: &mut FieldErrors) {
    let addresses = endpoint.get("addresses");
    if addresses.is_empty() {
        errors.add(|| addresses.required("must contain at least 1 address"));
    } else if has_more(&addresses, MOST_ADDRESSES) {
        errors.add(|| addresses.too_many(MOST_ADDRESSES));
    }
    for address in addresses.items() {
        match kind {
            "IPv4" | "IPv6" => self::address(&address, &addresses, kind, errors),
            "FQDN" => domain(&address, errors),
            _ => {}
        }
    }
    for (name, rule) in [("nodeName", NameRule::Subdomain), ("hostname", NameRule::Label)] {
        let field = endpoint.get(name);
        if field.is_set() {
            field.named(rule, errors);
        }
    }
    hints(&endpoint.get("hints"), errors);
}

/// Kubernetes tells of another family at the list, and of all else at the address.
fn address(field: &Field<'_>, list: &Field<'_>, family: &str, errors: &mut FieldErrors) {
    let text = field.text();
    let Some(address) = parse_address(text) else {
        return field.problems(address_problems(text, Spelling::Any), errors);
    };
    let is_wrong_family = address.is_ipv4() != (family == "IPv4");
    let spelling = if is_wrong_family { Spelling::Any } else { Spelling::Canonical };
    let problems = address_problems(text, spelling);
    if !problems.is_empty() {
        return field.problems(problems, errors);
    }
    if is_wrong_family {
        errors.add(|| list.invalid_as(text, format!("must be an {family} address")));
    }
    field.problems(unusable(address, text).into_iter().collect(), errors);
}

fn domain(field: &Field<'_>, errors: &mut FieldErrors) {
    let text = field.text();
    if text.is_empty() {
        return errors.add(|| field.required(""));
    }
    let name = text.strip_suffix('.').unwrap_or(text);
    let mut told = |part: &str, rule: NameRule| {
        let problems = rule.problems(part, false).join(",");
        let is_wrong = !problems.is_empty();
        if is_wrong {
            errors.add(|| field.invalid_as(part, problems));
        }
        is_wrong
    };
    if told(name, NameRule::Subdomain) {
        return;
    }
    if name.contains('.') {
        name.split('.').any(|label| told(label, NameRule::Label));
    } else {
        let why = "should be a domain with at least two segments separated by dots";
        errors.add(|| field.invalid_as(name, why));
    }
}

/// Where the topology wants the endpoint to be used.
fn hints(hints: &Field<'_>, errors: &mut FieldErrors) {
    for (list, is_zone) in [("forZones", true), ("forNodes", false)] {
        let hinted = hints.get(list);
        if has_more(&hinted, MOST_HINTS) {
            return errors.add(|| hinted.too_many(MOST_HINTS));
        }
        let mut names = HashSet::new();
        for hint in hinted.items() {
            let name = hint.get("name");
            if is_zone {
                name.problems(labels::value(name.text()), errors);
            } else {
                name.named(NameRule::Subdomain, errors);
            }
            if !names.insert(name.text()) {
                errors.add(|| name.duplicate());
            }
        }
    }
}

fn ports(ports: &Field<'_>, errors: &mut FieldErrors) {
    if has_more(ports, MOST_PORTS) {
        return errors.add(|| ports.too_many(MOST_PORTS));
    }
    let mut names = HashSet::new();
    for port in ports.items() {
        let [name, protocol, app] = ["name", "protocol", "appProtocol"].map(|name| port.get(name));
        if !name.text().is_empty() {
            name.named(NameRule::Label, errors);
        }
        if !names.insert(name.text()) {
            errors.add(|| name.duplicate());
        }
        if protocol.is_set() && !PROTOCOLS.contains(&protocol.text()) {
            errors.add(|| protocol.not_supported(&PROTOCOLS));
        }
        if app.is_set() {
            app.problems(labels::key(app.text()), errors);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::tests::told;

    fn slice(kind: &str, address: &str) -> Value {
        json!({"addressType": kind, "endpoints": [{"addresses": [address]}]})
    }

    #[test]
    fn addresses_are_canonical_and_of_one_family() {
        for (kind, address, wrong) in [
            ("IPv4", "10.0.0.1", ""),
            ("IPv4", "10.0.0.01", "[0]: Invalid value: \"10.0.0.01\": must not have leading 0s"),
            ("IPv4", "2001:db8::1", ": Invalid value: \"2001:db8::1\": must be an IPv4 address"),
            (
                "IPv6",
                "2001:DB8::1",
                "[0]: Invalid value: \"2001:DB8::1\": must be in canonical form (\"2001:db8::1\")",
            ),
            (
                "IPv4",
                "127.0.0.1",
                "[0]: Invalid value: \"127.0.0.1\": may not be in the loopback range (127.0.0.0/8, ::1/128)",
            ),
            (
                "FQDN",
                "a",
                "[0]: Invalid value: \"a\": should be a domain with at least two segments separated by dots",
            ),
        ] {
            let found = told(&STRATEGY, &slice(kind, address), None).join(", ");
            let expected =
                if wrong.is_empty() { String::new() } else { format!("endpoints[0].addresses{wrong}") };
            assert_eq!(found, expected, "{kind} {address}");
        }
        let other = slice("FQDN", "a.b");
        assert_eq!(
            told(&STRATEGY, &other, Some(&slice("IPv4", "10.0.0.1"))),
            ["addressType: Invalid value: \"FQDN\": field is immutable"]
        );
    }

    #[test]
    fn labels_and_topologies_count() {
        let old = json!({"metadata": {"generation": 1}, "endpoints": [{}]});
        let generation = |mut new: Value| {
            prepare_update(&mut new, &old);
            object::generation(&new)
        };
        let meta = json!({"generation": 1});
        assert_eq!(generation(json!({"metadata": meta, "endpoints": [{"deprecatedTopology": {}}]})), 1);
        assert_eq!(
            generation(json!({"metadata": meta, "endpoints": [{"deprecatedTopology": {"a": "b"}}]})),
            2
        );
        assert_eq!(
            generation(json!({"metadata": {"generation": 1, "labels": {"a": "b"}}, "endpoints": [{}]})),
            2
        );
    }

    #[test]
    fn topologies_go() {
        let host = json!({HOST_LABEL: "n"});
        let old = json!({"endpoints": [{"deprecatedTopology": host}]});
        let mut same = old.clone();
        drop_topology(&mut same, Some(&old));
        assert_eq!(same, old);
        let mut new = json!({"endpoints": [{"deprecatedTopology": host, "hostname": "h"}]});
        drop_topology(&mut new, Some(&old));
        assert_eq!(new, json!({"endpoints": [{"hostname": "h", "nodeName": "n"}]}));
        let mut created = old.clone();
        drop_topology(&mut created, None);
        assert_eq!(created, json!({"endpoints": [{}]}));
    }
}
