//! Service: how its ports are reached. Addresses, ports that the server allots, and outside traffic have files of their
//! own.

mod addresses;
pub(crate) mod allotment;
mod defaults;
pub(crate) mod node_ports;
mod ports;
mod status;
mod traffic;
mod warnings;

use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::names::{self, NameRule};
use serde_json::Value;

use crate::kinds::field::Field;
use crate::kinds::shared::label_selector;
use crate::kinds::shared::network;
use crate::kinds::{Habit, Naming, Reading, Strategy};
use crate::object;

pub(super) const STRATEGY: Strategy = Strategy {
    kind: "Service",
    habits: &[Habit::CreatedByUpdate, Habit::AnswersDeleted],
    name: Some(Naming::Rule(NameRule::Label)),
    default: Some(defaults::fill),
    reading: Some(Reading { differs: has_needless_policy, read: drop_needless_policy }),
    prepare_create: Some(allotment::prepare_create),
    prepare_update: Some(allotment::prepare_update),
    validate: Some(validate),
    validate_update: Some(validate_update),
    validate_status: Some(status::validate),
    warnings: Some(warnings::of),
    status_warnings: Some(network::balancer_warnings),
    ..Strategy::PLAIN
};

const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const LONGEST_AFFINITY: i64 = 86_400;
const MODE: &str = "service.kubernetes.io/topology-mode";
const HINTS: &str = "service.kubernetes.io/topology-aware-hints";

/// Whether a name outside has a policy for traffic inside, which is stored and means nothing.
fn has_needless_policy(service: &Value) -> bool {
    service.pointer("/spec/type").is_some_and(|kind| kind == "ExternalName")
        && service.pointer("/spec/internalTrafficPolicy").is_some_and(|policy| !policy.is_null())
}

fn drop_needless_policy(service: &mut Value) {
    if has_needless_policy(service) {
        object::set_field(&mut service["spec"], "internalTrafficPolicy", None);
    }
}

fn validate(object: &Value, errors: &mut FieldErrors) {
    let service = Field::root(object);
    allotted(&service, None, errors);
    if errors.is_empty() {
        whole(&service, None, errors);
    }
}

fn validate_update(object: &Value, old: &Value, errors: &mut FieldErrors) {
    let (service, before) = (Field::root(object), Field::root(old));
    allotted(&service, Some(&before), errors);
    if errors.is_empty() {
        addresses::changes(&service.get("spec"), &before.get("spec"), errors);
        traffic::changes(&service.get("spec"), &before.get("spec"), errors);
        whole(&service, Some(&before), errors);
    }
}

/// What addresses are allotted by is checked first, and alone.
fn allotted(service: &Field<'_>, old: Option<&Field<'_>>, errors: &mut FieldErrors) {
    addresses::allottable(&service.get("spec"), old, errors);
}

fn whole(service: &Field<'_>, old: Option<&Field<'_>>, errors: &mut FieldErrors) {
    let spec = service.get("spec");
    topology(&service.get("metadata").get("annotations"), errors);
    let ports = spec.get("ports");
    if ports.is_empty() && !addresses::is_headless(&spec) && kind(&spec) != "ExternalName" {
        errors.add(|| ports.required(""));
    }
    of_type(&spec, errors);
    ports::validate(&ports, errors);
    label_selector::label_pairs(&spec.get("selector"), errors);
    affinity(&spec, errors);
    outside_addresses(&spec, old, errors);
    let own = spec.get("type");
    if own.is_empty() {
        errors.add(|| own.required(""));
    } else {
        own.one_of(&TYPES, errors);
    }
    ports::apart(&spec, errors);
    traffic::validate(service, old, errors);
}

fn kind<'o>(spec: &Field<'o>) -> &'o str {
    spec.get("type").text()
}

/// Two annotations for one setting agree.
fn topology(annotations: &Field<'_>, errors: &mut FieldErrors) {
    let (mode, hints) = (annotations.key(MODE), annotations.key(HINTS));
    if mode.is_set() && hints.is_set() && mode.text() != hints.text() {
        errors.add(|| mode.invalid(format!("must match annotations[{HINTS}] when both are specified")));
    }
}

/// What the type asks of the name and the addresses.
fn of_type(spec: &Field<'_>, errors: &mut FieldErrors) {
    match kind(spec) {
        kind @ ("LoadBalancer" | "NodePort") if addresses::is_headless(spec) => {
            let first = spec.get("clusterIPs").index(0);
            errors.add(|| first.invalid(format!("may not be set to 'None' for {kind} services")));
        }
        "ExternalName" => {
            for field in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
                let field = spec.get(field);
                // A policy that is empty is one all the same.
                let is_given = field.is_set() && (field.value().is_string() || !field.is_empty());
                if is_given {
                    errors.add(|| field.forbidden("may not be set for ExternalName services"));
                }
            }
            let name = spec.get("externalName");
            // A dot at the end says that the name is whole.
            let bare = name.text().strip_suffix('.').unwrap_or(name.text());
            if bare.is_empty() {
                errors.add(|| name.required(""));
            }
            for problem in names::dns1123_subdomain(bare).into_iter().filter(|_| !bare.is_empty()) {
                errors.add(|| name.invalid_as(bare, problem));
            }
        }
        _ => {}
    }
}

/// Whether a client stays with a pod, and how long.
fn affinity(spec: &Field<'_>, errors: &mut FieldErrors) {
    let (affinity, config) = (spec.get("sessionAffinity"), spec.get("sessionAffinityConfig"));
    match affinity.text() {
        "" => errors.add(|| affinity.required("")),
        "None" => {
            if config.is_set() {
                errors.add(|| config.forbidden("must not be set when session affinity is None"));
            }
        }
        "ClientIP" => {
            let client = config.get("clientIP");
            let seconds = client.get("timeoutSeconds");
            let missing = [&config, &client, &seconds].into_iter().find(|part| !part.is_set());
            if let Some(missing) = missing {
                errors.add(|| missing.required("when session affinity type is ClientIP"));
            } else if !seconds.integer().is_some_and(|own| (1..=LONGEST_AFFINITY).contains(&own)) {
                let why = format!("must be greater than 0 and less than {LONGEST_AFFINITY}");
                errors.add(|| seconds.invalid(why));
            }
        }
        _ => affinity.one_of(&["ClientIP", "None"], errors),
    }
}

/// Addresses outside the cluster that lead to the service. Those that it had before may stay.
fn outside_addresses(spec: &Field<'_>, old: Option<&Field<'_>>, errors: &mut FieldErrors) {
    let before = old.map(|old| old.get("spec").get("externalIPs"));
    let kept = addresses::texts(before.as_ref());
    for address in spec.get("externalIPs").items() {
        let found = errors.count();
        if !kept.contains(address.text()) {
            network::legacy_address(&address, errors);
        }
        let parsed = network::parse_address(address.text()).filter(|_| errors.count() == found);
        if let Some(why) = parsed.and_then(|ip| network::unusable(ip, address.text())) {
            errors.add(|| address.invalid(why));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::tests::told;

    fn service(change: fn(&mut Value)) -> Value {
        let mut object = json!({"metadata": {"name": "a"}, "spec": {
            "type": "ClusterIP", "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster",
            "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}]}});
        change(&mut object["spec"]);
        object
    }

    #[test]
    fn what_is_wrong_is_told_in_order() {
        assert_eq!(told(&STRATEGY, &service(|_| ()), None), Vec::<String>::new());
        let object = service(|spec| {
            spec["sessionAffinity"] = json!("ClientIP");
            spec["externalIPs"] = json!(["127.0.0.1"]);
            spec["externalTrafficPolicy"] = json!("Cluster");
            spec["ports"] = json!([]);
        });
        assert_eq!(
            told(&STRATEGY, &object, None),
            [
                "spec.ports: Required value",
                "spec.sessionAffinityConfig: Required value: when session affinity type is ClientIP",
                "spec.externalIPs[0]: Invalid value: \"127.0.0.1\": may not be in the loopback range (127.0.0.0/8, \
                 ::1/128)",
            ]
        );
    }

    #[test]
    fn names_outside_have_no_address_inside() {
        let object = service(|spec| {
            spec["type"] = json!("ExternalName");
            spec["externalName"] = json!("example.com.");
        });
        assert_eq!(
            told(&STRATEGY, &object, None),
            ["clusterIPs", "ipFamilies", "ipFamilyPolicy"]
                .iter()
                .map(|field| format!("spec.{field}: Forbidden: may not be set for ExternalName services"))
                .collect::<Vec<_>>()
        );
    }

    #[test]
    fn annotations_agree() {
        let mut object = service(|_| ());
        object["metadata"]["annotations"] = json!({MODE: "Auto", HINTS: "Disabled"});
        assert_eq!(
            told(&STRATEGY, &object, None),
            [
                "metadata.annotations[service.kubernetes.io/topology-mode]: Invalid value: \"Auto\": must match \
              annotations[service.kubernetes.io/topology-aware-hints] when both are specified"
            ]
        );
    }
}
