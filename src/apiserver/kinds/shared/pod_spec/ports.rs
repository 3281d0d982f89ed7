//! Validates the ports of containers.

use std::collections::HashSet;

use admit_apimachinery::field_error::FieldError;
use admit_apimachinery::findings::FieldErrors;
use serde_json::Value;

use super::{Options, known};
use crate::kinds::field::Field;
use crate::kinds::shared::network;

/// Validates the ports of a container.
pub(super) fn validate(ports: &Field<'_>, errors: &mut FieldErrors) {
    let mut names = HashSet::new();
    for port in ports.items() {
        let name = port.get("name");
        if !name.text().is_empty() {
            let mut found = FieldErrors::default();
            network::port_name(&name, &mut found);
            let is_name = found.is_empty();
            errors.extend(found);
            if is_name && !names.insert(name.text()) {
                errors.add(|| name.duplicate());
            }
        }
        let (own, host) = (port.get("containerPort"), port.get("hostPort"));
        if is_zero(&own) {
            errors.add(|| own.required(""));
        } else {
            network::port_number(&own, errors);
        }
        if !is_zero(&host) {
            network::port_number(&host, errors);
        }
        known(&port.get("protocol"), &["SCTP", "TCP", "UDP"], errors);
    }
}

fn is_zero(number: &Field<'_>) -> bool {
    number.integer().unwrap_or(0) == 0
}

/// A host port may be used by one container only. Errors use the path of `told_as`.
pub(super) fn unique_on_host(
    container: &Field<'_>,
    told_as: &Field<'_>,
    taken: &mut HashSet<String>,
    errors: &mut FieldErrors,
) {
    let ports = told_as.with(container.value()).get("ports");
    for port in ports.items() {
        let host = port.get("hostPort");
        if is_zero(&host) {
            continue;
        }
        let number = host.integer().unwrap_or(0);
        let place = format!("{}/{}/{number}", port.get("protocol").text(), port.get("hostIP").text());
        if taken.contains(&place) {
            errors.add(|| FieldError::duplicate(&host, place.as_str()));
        } else {
            taken.insert(place);
        }
    }
}

/// With `hostNetwork` the host port must equal the container port.
pub(super) fn on_host_network(spec: &Field<'_>, options: &Options<'_>, errors: &mut FieldErrors) {
    if !spec.get("hostNetwork").flag() {
        return;
    }
    for port in spec.get("containers").items().flat_map(|container| container.get("ports").items()) {
        let host = port.get("hostPort");
        let (on_host, own) = (host.integer().unwrap_or(0), port.get("containerPort").integer().unwrap_or(0));
        if (options.is_pod || on_host != 0) && on_host != own {
            let why = "must match `containerPort` when `hostNetwork` is true";
            errors.add(|| host.invalid_as(on_host, why));
        }
    }
}

/// Validates a port given by number or name.
pub(super) fn number_or_name(port: &Field<'_>, errors: &mut FieldErrors) {
    match port.value() {
        Value::String(_) => network::port_name(port, errors),
        _ => network::port_number(port, errors),
    }
}
