//! What a Service is given: an address inside the cluster, of a family, and ports on nodes. Which of them are free, the
//! registry knows; which a Service needs, and what it keeps, is decided here. Read from
//! pkg/registry/core/service/storage/alloc.go.

use std::net::IpAddr;

use admit_apimachinery::findings::FieldErrors;
use serde_json::{Value, json};

use super::{addresses, node_ports};
use crate::kinds::field::Field;
use crate::kinds::shared::network;
use crate::object;

/// What is given together.
const GIVEN: [&str; 4] = ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"];
/// Of these, the address, in its two fields.
const ADDRESS: [&str; 2] = ["clusterIP", "clusterIPs"];
/// What is kept by an update that does not speak of it. Families follow from the addresses.
const KEPT: [&str; 3] = ["clusterIP", "clusterIPs", "ipFamilyPolicy"];

/// Names the families of the addresses, which come with [`give`].
pub(super) fn prepare_create(service: &mut Value) {
    let own = text(service, "clusterIP").to_owned();
    let spec = object::member_mut(object::map_of(service), "spec");
    if !own.is_empty() {
        spec.entry("clusterIPs").or_insert_with(|| json!([own]));
    }
    if !is_external(service) {
        fill_families(service);
    }
}

/// Services are of one family, that of the cluster, unless they have no address and name their endpoints themselves.
fn fill_families(service: &mut Value) {
    let list =
        |field: &str| service["spec"].get(field).and_then(Value::as_array).cloned().unwrap_or_default();
    let selects =
        service.pointer("/spec/selector").and_then(Value::as_object).is_some_and(|own| !own.is_empty());
    let is_bare = text(service, "clusterIP") == "None" && !selects;
    let default = if is_bare { "RequireDualStack" } else { "SingleStack" };
    // One that is empty has been given, and is refused.
    let given = service.pointer("/spec/ipFamilyPolicy").and_then(Value::as_str);
    let policy = given.unwrap_or(default).to_owned();
    let mut families = list("ipFamilies");
    let unsaid = list("clusterIPs").split_off(families.len().min(list("clusterIPs").len()));
    let unsaid: Vec<_> = unsaid.iter().filter_map(|own| network::parse_address(own.as_str()?)).collect();
    // An address of the other family is refused by itself.
    let is_odd = unsaid.iter().any(IpAddr::is_ipv6);
    // Two of one family are refused by themselves.
    if !is_odd && !unsaid.is_empty() && !families.contains(&"IPv4".into()) {
        families.push("IPv4".into());
    }
    if families.is_empty() && !is_odd {
        families.push("IPv4".into());
    }
    if let ([one], true, true) = (families.as_slice(), is_bare, policy != "SingleStack") {
        let other = if one == "IPv6" { "IPv4" } else { "IPv6" };
        families.push(other.into());
    }
    object::set_field(&mut service["spec"], "ipFamilies", Some(families.into()));
    object::set_field(&mut service["spec"], "ipFamilyPolicy", Some(policy.into()));
}

pub(super) fn prepare_update(service: &mut Value, old: &Value) {
    node_ports::withdraw(service, old);
    keep_address(service, old);
    node_ports::keep(service, old);
}

fn keep_address(service: &mut Value, old: &Value) {
    match (is_external(old), is_external(service)) {
        (false, false) => {
            follow_first(service, old);
            for field in KEPT {
                // A policy that is empty has been given, and is refused.
                let is_empty = |value: &Value| value == "" && field != "ipFamilyPolicy";
                let unset = service["spec"].get(field).is_none_or(|value| is_empty(value) || value.is_null());
                if unset {
                    object::set_field(&mut service["spec"], field, old["spec"].get(field).cloned());
                }
            }
            keep_families(service, old);
        }
        // It gets an address from now on.
        (true, false) => prepare_create(service),
        // What it had goes, unless the change speaks of it.
        (false, true) => {
            follow_first(service, old);
            let is_same = |field: &&str| service["spec"].get(field) == old["spec"].get(field);
            let kept = ADDRESS.iter().all(is_same);
            let gone: Vec<&str> = GIVEN
                .into_iter()
                .filter(|field| if ADDRESS.contains(field) { kept } else { is_same(field) })
                .collect();
            gone.into_iter().for_each(|field| object::set_field(&mut service["spec"], field, None));
        }
        (true, true) => follow_first(service, old),
    }
}

/// Whoever changes the older of the two fields alone means both.
fn follow_first(service: &mut Value, old: &Value) {
    let same = |field: &str| service["spec"].get(field) == old["spec"].get(field);
    let own = text(service, "clusterIP").to_owned();
    let unsaid = service["spec"].get("clusterIPs").is_none_or(Value::is_null);
    if !own.is_empty() && !same("clusterIP") && (unsaid || same("clusterIPs")) {
        service["spec"]["clusterIPs"] = json!([own]);
    }
}

/// Whoever asks for one family gives the second one back; without that it stays, and giving it back is refused.
fn keep_families(service: &mut Value, old: &Value) {
    let families = service.pointer_mut("/spec/ipFamilies").and_then(Value::as_array_mut);
    let before = old.pointer("/spec/ipFamilies").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let (own, is_reduced) = match families {
        Some(families) => (families.len(), !families.is_empty() && families.len() < before.len()),
        None => (0, false),
    };
    if text(service, "ipFamilyPolicy") != "SingleStack" {
        if !is_reduced {
            fill_families(service);
        }
        return;
    }
    if own > 1
        && service["spec"]["ipFamilies"] == old["spec"]["ipFamilies"]
        && let Some(families) = service.pointer_mut("/spec/ipFamilies").and_then(Value::as_array_mut)
    {
        families.truncate(1);
    }
    fill_families(service);
}

/// What hinders that the service is given anything.
pub(crate) fn hindrances(service: &Value, old: Option<&Value>) -> FieldErrors {
    let mut errors = FieldErrors::default();
    let before = old.map(Field::root);
    addresses::allottable(&Field::root(service).get("spec"), before.as_ref(), &mut errors);
    errors
}

/// Whether the service has, or is to have, an address.
pub(crate) fn is_addressed(service: &Value) -> bool {
    let first = service.pointer("/spec/clusterIPs/0").and_then(Value::as_str);
    !is_external(service) && first.unwrap_or_else(|| text(service, "clusterIP")) != "None"
}

/// The addresses of the service, as they are written.
pub(crate) fn addresses(service: &Value) -> Vec<(&str, IpAddr)> {
    let all = service.pointer("/spec/clusterIPs").and_then(Value::as_array);
    let texts = all.into_iter().flatten().filter_map(Value::as_str);
    if !is_addressed(service) {
        return Vec::new();
    }
    texts.filter_map(|text| Some((text, network::parse_address(text)?))).collect()
}

/// Gives the service its address.
pub(crate) fn give(service: &mut Value, address: IpAddr) {
    let address = address.to_string();
    let spec = object::member_mut(object::map_of(service), "spec");
    spec.insert("clusterIPs".to_owned(), json!([address]));
    spec.insert("clusterIP".to_owned(), address.into());
}

fn is_external(service: &Value) -> bool {
    text(service, "type") == "ExternalName"
}

fn text<'v>(service: &'v Value, field: &str) -> &'v str {
    service.get("spec").and_then(|spec| spec.get(field)?.as_str()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_given_once_and_kept() {
        let mut service = json!({"spec": {"type": "ClusterIP"}});
        prepare_create(&mut service);
        assert_eq!(service["spec"]["ipFamilies"], json!(["IPv4"]));
        assert!(is_addressed(&service) && addresses(&service).is_empty());
        let address: IpAddr = "10.0.0.7".parse().unwrap();
        give(&mut service, address);
        assert_eq!(addresses(&service), [("10.0.0.7", address)]);
        let mut update = json!({"spec": {"type": "NodePort"}});
        prepare_update(&mut update, &service);
        assert_eq!(addresses(&update), addresses(&service));
        let mut external =
            json!({"spec": {"type": "ExternalName", "clusterIP": "10.0.0.7", "clusterIPs": ["10.0.0.7"]}});
        prepare_update(&mut external, &service);
        assert_eq!(external, json!({"spec": {"type": "ExternalName"}}));
    }

    #[test]
    fn who_names_the_endpoints_may_name_some_of_either_family() {
        let families = |mut service: Value| {
            prepare_create(&mut service);
            (service["spec"]["ipFamilies"].take(), service["spec"]["ipFamilyPolicy"].take())
        };
        assert_eq!(
            families(json!({"spec": {"clusterIP": "None"}})),
            (json!(["IPv4", "IPv6"]), json!("RequireDualStack"))
        );
        assert_eq!(
            families(json!({"spec": {"clusterIP": "None", "selector": {"a": "b"}}})),
            (json!(["IPv4"]), json!("SingleStack"))
        );
        assert_eq!(
            families(
                json!({"spec": {"clusterIP": "None", "ipFamilyPolicy": "SingleStack", "ipFamilies": ["IPv6"]}})
            ),
            (json!(["IPv6"]), json!("SingleStack"))
        );
    }
}
