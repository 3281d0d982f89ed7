//! Validates the status of a ResourceClaim: allocation, consumers, and the drivers' device status. Read from
//! `validateResourceClaimStatusUpdate` of pkg/apis/resource/validation of Kubernetes 1.36.

use std::collections::HashSet;
use std::net::IpAddr;

use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::go;
use serde_json::{Value, json};

use super::claim_spec::Names;
use super::device::binding_conditions;
use super::device_taints::tolerations;
use super::texts::{configuration, distinct, pool_name, raw_object, uid};
use crate::kinds::field::Field;
use crate::kinds::shared::conditions;
use crate::kinds::shared::inside;
use crate::kinds::shared::node_selector::node_selector;
use crate::kinds::shared::texts::{dns_label, driver_name, given};
use crate::object;

const MOST_USERS: usize = 256;
const MOST_RESULTS: usize = 32;
const MOST_CONFIGURATIONS: usize = 64;
const MOST_CONDITIONS: usize = 8;
const MOST_ADDRESSES: usize = 16;
/// Most bytes of a driver's data about a device.
const DATA_LENGTH: usize = 10 << 10;

/// Removes the driver's status of devices that are no longer allocated.
pub(super) fn drop_deallocated(claim: &mut Value, old: &Value) {
    fn allocated(claim: &Value) -> HashSet<String> {
        let results = Field::root(claim).get("status").get("allocation").get("devices").get("results");
        results.items().map(|result| device_id(&result)).collect()
    }
    let (before, now) = (allocated(old), allocated(claim));
    let Some(status) = claim.get_mut("status") else { return };
    let Some(devices) = status.get_mut("devices").and_then(Value::as_array_mut) else { return };
    devices.retain(|device| {
        let id = device_id(&Field::root(device));
        now.contains(&id) || !before.contains(&id)
    });
    if devices.is_empty() {
        object::set_field(status, "devices", None);
    }
}

/// Validates a new status.
pub(super) fn validate_status(claim: &Value, old: &Value, errors: &mut FieldErrors) {
    let (root, was) = (Field::root(claim), Field::root(old).get("status"));
    let status = root.get("status");
    let (allocation, users) = (status.get("allocation"), status.get("reservedFor"));
    let names = Names::of(&root.get("spec").get("devices"));
    let user = |own: &Field<'_>, errors: &mut FieldErrors| {
        for name in ["resource", "name", "uid"] {
            given(&own.get(name), errors);
        }
    };
    distinct(&users, Some(MOST_USERS), |own| own.get("uid").text().to_owned(), user, errors);
    let allocated: HashSet<String> =
        allocation.get("devices").get("results").items().map(|own| device_id(&own)).collect();
    let device = |own: &Field<'_>, errors: &mut FieldErrors| device_status(own, &allocated, errors);
    distinct(&status.get("devices"), None, device_id, device, errors);
    if !users.is_empty() && !allocation.is_set() {
        errors.add(|| users.forbidden("may not be specified when `allocated` is not set"));
    } else if object::is_terminating(claim) {
        let before: HashSet<String> =
            was.get("reservedFor").items().map(|own| own.value().to_string()).collect();
        if users.items().any(|own| !before.contains(&own.value().to_string())) {
            let why =
                "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set";
            errors.add(|| users.forbidden(why));
        }
    }
    let before = was.get("allocation");
    if allocation.is_set() && before.is_set() {
        const NAME: &str = "io.k8s.api.resource.v1.AllocationResult";
        if !inside::alike(NAME, allocation.value(), before.value()) {
            let shown = || inside::told(&inside::shown(NAME, &allocation.as_sent()));
            errors.add(|| allocation.invalid_as(shown(), "field is immutable"));
        }
    } else if allocation.is_set() {
        new_allocation(&allocation, &names, errors);
    }
}

/// Identifies a device in messages: its driver, pool, name, and share.
fn device_id(device: &Field<'_>) -> String {
    let part = |name: &'static str| device.get(name).text();
    let share = device.get("shareID");
    let id = format!("{}/{}/{}", part("driver"), part("pool"), part("device"));
    if share.is_empty() { id } else { format!("{id}/{}", share.text()) }
}

fn new_allocation(allocation: &Field<'_>, names: &Names<'_>, errors: &mut FieldErrors) {
    let devices = allocation.get("devices");
    let (results, configurations) = (devices.get("results"), devices.get("config"));
    if results.len() > MOST_RESULTS {
        errors.add(|| results.too_many(32));
    } else {
        results.items().for_each(|own| result(&own, names, errors));
    }
    if configurations.len() > MOST_CONFIGURATIONS {
        errors.add(|| configurations.too_many(64));
    } else {
        for own in configurations.items() {
            let source = own.get("source");
            if source.is_empty() {
                errors.add(|| source.required(""));
            }
            source.one_of(&["FromClaim", "FromClass"], errors);
            names.check_list(&own.get("requests"), errors);
            configuration(&own, false, errors);
        }
    }
    let selector = allocation.get("nodeSelector");
    if selector.is_set() {
        node_selector(&selector, errors);
    }
}

fn result(result: &Field<'_>, names: &Names<'_>, errors: &mut FieldErrors) {
    names.check(&result.get("request"), errors);
    driver_name(&result.get("driver"), errors);
    pool_name(&result.get("pool"), errors);
    dns_label(&result.get("device"), errors);
    binding_conditions(result, errors);
    tolerations(&result.get("tolerations"), errors);
    let share = result.get("shareID");
    if share.is_set() {
        uid(&share, errors);
    }
}

fn device_status(device: &Field<'_>, allocated: &HashSet<String>, errors: &mut FieldErrors) {
    driver_name(&device.get("driver"), errors);
    pool_name(&device.get("pool"), errors);
    dns_label(&device.get("device"), errors);
    let share = device.get("shareID");
    if share.is_set() {
        uid(&share, errors);
    }
    if !allocated.contains(&device_id(device)) {
        let part = |name: &'static str| device.get(name).text();
        let shown = json!({"Driver": part("driver"), "Pool": part("pool"), "Device": part("device"),
            "ShareID": share.text()});
        errors.add(|| device.invalid_as(inside::told(&shown), "must be an allocated device in the claim"));
    }
    let list = device.get("conditions");
    if list.len() > MOST_CONDITIONS {
        errors.add(|| list.too_many(8));
    }
    conditions::validate(&list, errors);
    let data = device.get("data");
    if data.is_set() {
        raw_object(&data, false, DATA_LENGTH, errors);
    }
    network(&device.get("networkData"), errors);
}

fn network(data: &Field<'_>, errors: &mut FieldErrors) {
    let (interface, hardware) = (data.get("interfaceName"), data.get("hardwareAddress"));
    if interface.text().len() > 256 {
        errors.add(|| interface.too_long(256));
    }
    if hardware.text().len() > 128 {
        errors.add(|| hardware.too_long(128));
    }
    let addresses = data.get("ips");
    distinct(&addresses, Some(MOST_ADDRESSES), |own| own.text().to_owned(), interface_address, errors);
}

/// Validates an address with prefix length in canonical form.
fn interface_address(address: &Field<'_>, errors: &mut FieldErrors) {
    let text = address.text();
    let Ok((ip, bits)) = go::netip::parse_prefix(text) else {
        let why = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)";
        errors.add(|| address.invalid(why));
        return;
    };
    let canonical = format!("{ip}/{bits}");
    if matches!(ip, IpAddr::V6(ip) if ip.to_ipv4_mapped().is_some()) {
        errors.add(|| address.invalid("must not be an IPv4-mapped IPv6 address"));
    } else if canonical != text {
        errors.add(|| address.invalid(format!("must be in canonical form ({})", go::quote(&canonical))));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(status: &Value, old: &Value) -> Vec<String> {
        let claim = |status: &Value| json!({"spec": {"devices": {"requests": [{"name": "r", "exactly": {}}]}}, "status": status});
        let mut errors = FieldErrors::default();
        validate_status(&claim(status), &claim(old), &mut errors);
        errors.into_iter().map(|error| error.to_string()).collect()
    }

    #[test]
    fn what_was_allocated_stays() {
        let allocation = |device: &str| json!({"devices": {"results": [{"request": "r", "driver": "d", "pool": "p", "device": device}]}});
        let status = |device: &str| json!({"allocation": allocation(device)});
        assert_eq!(texts(&status("a"), &json!({})), Vec::<String>::new());
        assert_eq!(texts(&status("a"), &status("a")), Vec::<String>::new());
        let found = texts(&status("b"), &status("a"));
        assert!(
            found[0].starts_with(
                "status.allocation: Invalid value: {\"Devices\":{\"Results\":[{\"Request\":\"r\","
            )
        );
    }

    #[test]
    fn drivers_speak_of_devices_that_were_allocated() {
        let status = json!({"devices": [{"driver": "d", "pool": "p", "device": "x", "networkData": {"ips": ["10.0.0.01/24"]}}]});
        assert_eq!(
            texts(&status, &json!({})),
            [
                "status.devices[0]: Invalid value: {\"Driver\":\"d\",\"Pool\":\"p\",\"Device\":\"x\",\"ShareID\":\"\"}: \
                 must be an allocated device in the claim",
                "status.devices[0].networkData.ips[0]: Invalid value: \"10.0.0.01/24\": must be a valid address in CIDR \
                 form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)",
            ]
        );
    }
}
