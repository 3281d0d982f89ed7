//! Validates the load balancer status of a Service (`ValidateLoadBalancerStatus`).

use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::names;
use serde_json::Value;

use super::kind;
use crate::kinds::field::Field;
use crate::kinds::shared::network;

const MODES: [&str; 2] = ["Proxy", "VIP"];

pub(super) fn validate(object: &Value, old: &Value, errors: &mut FieldErrors) {
    let service = Field::root(object);
    let places = service.get("status").get("loadBalancer").get("ingress");
    if kind(&service.get("spec")) != "LoadBalancer" && !places.is_empty() {
        return errors.add(|| places.forbidden("may only be used when `spec.type` is 'LoadBalancer'"));
    }
    let before = Field::root(old).get("status").get("loadBalancer").get("ingress");
    let held: Vec<Field<'_>> = before.items().map(|place| place.get("ip")).collect();
    let kept: std::collections::HashSet<&str> = held.iter().map(Field::text).collect();
    for place in places.items() {
        let ip = place.get("ip");
        if !ip.is_empty() && !kept.contains(ip.text()) {
            network::legacy_address(&ip, errors);
        }
        mode(&place.get("ipMode"), !ip.is_empty(), errors);
        let name = place.get("hostname");
        if !name.is_empty() {
            name.problems(names::dns1123_subdomain(name.text()), errors);
            if network::parse_address(name.text()).is_some() {
                errors.add(|| name.invalid("must be a DNS name, not an IP address"));
            }
        }
    }
}

/// Validates `ipMode`, which is required with an IP and forbidden without.
fn mode(mode: &Field<'_>, has_address: bool, errors: &mut FieldErrors) {
    match (mode.is_set(), has_address) {
        (false, true) => errors.add(|| mode.required("must be specified when `ip` is set")),
        (true, false) => errors.add(|| mode.forbidden("may not be specified when `ip` is not set")),
        (true, true) if !MODES.contains(&mode.text()) => errors.add(|| mode.not_supported(&MODES)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn balancers_are_reached_by_addresses_or_names() {
        let told = |kind: &str, place: Value| -> Vec<String> {
            let status = json!({"loadBalancer": {"ingress": [place]}});
            let mut errors = FieldErrors::default();
            validate(&json!({"spec": {"type": kind}, "status": status}), &json!({}), &mut errors);
            errors.into_iter().map(|error| error.to_string()).collect()
        };
        assert_eq!(told("LoadBalancer", json!({"ip": "1.2.3.4", "ipMode": "VIP"})), Vec::<String>::new());
        assert_eq!(
            told("NodePort", json!({"ip": "1.2.3.4"})),
            ["status.loadBalancer.ingress: Forbidden: may only be used when `spec.type` is 'LoadBalancer'"]
        );
        assert_eq!(
            told("LoadBalancer", json!({"ip": "1.2.3.4", "hostname": "1.2.3.4"})),
            [
                "status.loadBalancer.ingress[0].ipMode: Required value: must be specified when `ip` is set",
                "status.loadBalancer.ingress[0].hostname: Invalid value: \"1.2.3.4\": must be a DNS name, not an IP \
                 address",
            ]
        );
    }
}
