//! Services: assigns cluster IPs, which stay with their Service.

use serde_json::{Value, json};

use super::node_ports;
use crate::object;

/// What is given together, and kept by an update that does not speak of it.
const GIVEN: [&str; 4] = ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"];

/// Gives the service an address out of `10.0.0.0/8`, made of its uid: nothing routes to it, it is only to be one of its own.
pub(super) fn prepare_create(service: &mut Value) {
    if text(service, "type") == "ExternalName" {
        return;
    }
    let own = match text(service, "clusterIP") {
        "" => address(object::uid(service)),
        given => given.to_owned(),
    };
    let selects =
        service.pointer("/spec/selector").and_then(Value::as_object).is_some_and(|own| !own.is_empty());
    let (families, policy) = match own.as_str() {
        // Whoever names its endpoints may name some of either family.
        "None" if !selects => (json!(["IPv4", "IPv6"]), "RequireDualStack"),
        own if own.contains(':') => (json!(["IPv6"]), "SingleStack"),
        _ => (json!(["IPv4"]), "SingleStack"),
    };
    let spec = object::member_mut(object::map_of(service), "spec");
    spec.insert("clusterIP".to_owned(), own.as_str().into());
    spec.entry("clusterIPs").or_insert_with(|| json!([own]));
    spec.entry("ipFamilies").or_insert(families);
    spec.entry("ipFamilyPolicy").or_insert_with(|| policy.into());
    node_ports::give(service, None);
}

pub(super) fn prepare_update(service: &mut Value, old: &Value) {
    node_ports::withdraw(service, old);
    keep_address(service, old);
    node_ports::give(service, Some(old));
}

fn keep_address(service: &mut Value, old: &Value) {
    let addressed = |service: &Value| text(service, "type") != "ExternalName";
    match (addressed(old), addressed(service)) {
        (true, true) => {
            // Whoever changes the older of the two fields alone means both.
            let same = |field: &str| service["spec"].get(field) == old["spec"].get(field);
            let own = text(service, "clusterIP").to_owned();
            let unsaid = service["spec"].get("clusterIPs").is_none_or(Value::is_null);
            if !own.is_empty() && !same("clusterIP") && (unsaid || same("clusterIPs")) {
                service["spec"]["clusterIPs"] = json!([own]);
            }
            for field in GIVEN {
                let unset = service["spec"].get(field).is_none_or(|value| value == "" || value.is_null());
                if unset {
                    object::set_field(&mut service["spec"], field, old["spec"].get(field).cloned());
                }
            }
        }
        // It has an address from now on.
        (false, true) => prepare_create(service),
        (_, false) => {
            for field in GIVEN {
                object::set_field(&mut service["spec"], field, None);
            }
        }
    }
}

fn text<'v>(service: &'v Value, field: &str) -> &'v str {
    service.get("spec").and_then(|spec| spec.get(field)?.as_str()).unwrap_or_default()
}

/// FNV-1a.
pub(super) fn hash(uid: &str) -> u32 {
    uid.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

fn address(uid: &str) -> String {
    // The first and the last address of the range belong to nobody.
    let host = (hash(uid) & 0x00ff_ffff).clamp(1, 0x00ff_fffe);
    std::net::Ipv4Addr::from(host | 0x0a00_0000).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_given_once_and_kept() {
        let mut service = json!({"metadata": {"uid": "u"}, "spec": {"type": "ClusterIP"}});
        prepare_create(&mut service);
        let own = service["spec"]["clusterIP"].clone();
        assert!(own.as_str().is_some_and(|own| own.starts_with("10.")), "{own}");
        assert_eq!(service["spec"]["clusterIPs"], json!([own]));
        let mut update = json!({"spec": {"type": "NodePort"}});
        prepare_update(&mut update, &service);
        assert_eq!(update["spec"]["clusterIP"], own);
        let mut external = json!({"spec": {"type": "ExternalName", "clusterIP": own}});
        prepare_update(&mut external, &service);
        assert_eq!(external, json!({"spec": {"type": "ExternalName"}}));
    }
}
