//! Validates the specification of a claim: device requests, constraints, and configuration. Read from
//! pkg/apis/resource/validation of Kubernetes 1.36.

use std::collections::{HashMap, HashSet};

use admit_apimachinery::findings::FieldErrors;
use serde_json::Value;

use super::device_taints::tolerations;
use super::texts::{configuration, distinct, fully_qualified_name, selectors};
use crate::kinds::field::Field;
use crate::kinds::shared::defaults::set_absent;
use crate::kinds::shared::texts::{dns_label, subdomain};

/// Maximum of requests, of constraints, of configurations, and of request names in each.
const MOST: usize = 32;
const MOST_ALTERNATIVES: usize = 8;
const NO_REQUEST: &str = "must be the name of a request in the claim or the name of a request and a subrequest \
                          separated by '/'";

/// Sets defaults: exactly one device for each request.
pub(super) fn default(spec: &mut Value) {
    let requests = spec.pointer_mut("/devices/requests").and_then(Value::as_array_mut);
    for request in requests.into_iter().flatten() {
        if let Some(exactly) = request.get_mut("exactly") {
            default_request(exactly);
        }
        let alternatives = request.get_mut("firstAvailable").and_then(Value::as_array_mut);
        alternatives.into_iter().flatten().for_each(default_request);
    }
}

fn default_request(request: &mut Value) {
    if !request.is_object() {
        return;
    }
    if request.get("allocationMode").and_then(Value::as_str).is_none_or(str::is_empty) {
        crate::object::set_field(request, "allocationMode", Some("ExactCount".into()));
    }
    if request.get("allocationMode").is_some_and(|mode| mode == "ExactCount") {
        if request.get("count").is_some_and(|count| *count == 0) {
            crate::object::set_field(request, "count", None);
        }
        set_absent(request, &[("count", 1.into())]);
    }
    let list = request.get_mut("tolerations").and_then(Value::as_array_mut);
    for toleration in list.into_iter().flatten() {
        if toleration.get("operator").and_then(Value::as_str).is_none_or(str::is_empty) {
            crate::object::set_field(toleration, "operator", Some("Equal".into()));
        }
    }
}

/// The names of requests, each with the names of its subrequests.
#[derive(Debug, Default)]
pub(super) struct Names<'o>(HashMap<&'o str, HashSet<&'o str>>);

impl<'o> Names<'o> {
    /// Collects the names of a claim's requests.
    pub(super) fn of(devices: &Field<'o>) -> Self {
        let names = |request: &Field<'o>| {
            let alternatives =
                request.get("firstAvailable").items().map(|alternative| alternative.get("name").text());
            (request.get("name").text(), alternatives.collect())
        };
        Self(devices.get("requests").items().map(|request| names(&request)).collect())
    }

    /// Validates a reference to a request, or to a request and one of its subrequests.
    pub(super) fn check(&self, reference: &Field<'_>, errors: &mut FieldErrors) {
        let parts: Vec<&str> = reference.text().split('/').collect();
        if parts.len() <= 2 {
            parts.iter().for_each(|part| dns_label(&reference.with(&Value::from(*part)), errors));
        }
        let known = match parts.as_slice() {
            [request] => self.0.contains_key(request),
            [request, alternative] => self.0.get(request).is_some_and(|names| names.contains(alternative)),
            _ => false,
        };
        if !known {
            errors.add(|| reference.invalid(NO_REQUEST));
        }
    }

    /// Validates a list of references.
    pub(super) fn check_list(&self, list: &Field<'_>, errors: &mut FieldErrors) {
        distinct(
            list,
            Some(MOST),
            |own| own.text().to_owned(),
            |own, errors| self.check(own, errors),
            errors,
        );
    }
}

/// Validates the specification of a claim. `stored`: its expressions are unchanged.
pub(super) fn validate(spec: &Field<'_>, stored: bool, errors: &mut FieldErrors) {
    let devices = spec.get("devices");
    let names = Names::of(&devices);
    let key = |own: &Field<'_>| own.get("name").text().to_owned();
    distinct(&devices.get("requests"), Some(MOST), key, |own, errors| request(own, stored, errors), errors);
    let constraints = devices.get("constraints");
    if constraints.len() > MOST {
        errors.add(|| constraints.too_many(32));
    } else {
        constraints.items().for_each(|own| constraint(&own, &names, errors));
    }
    let configurations = devices.get("config");
    if configurations.len() > MOST {
        errors.add(|| configurations.too_many(32));
    } else {
        for own in configurations.items() {
            names.check_list(&own.get("requests"), errors);
            configuration(&own, stored, errors);
        }
    }
}

fn request(request: &Field<'_>, stored: bool, errors: &mut FieldErrors) {
    let (exactly, alternatives) = (request.get("exactly"), request.get("firstAvailable"));
    dns_label(&request.get("name"), errors);
    match (exactly.is_set(), !alternatives.is_empty()) {
        (false, false) => {
            errors.add(|| request.required("exactly one of `exactly` or `firstAvailable` is required"));
        }
        (true, true) => {
            let why = "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set";
            errors.add(|| request.invalid_as(Value::Null, why));
        }
        (true, false) => devices(&exactly, stored, errors),
        (false, true) => {
            let key = |own: &Field<'_>| own.get("name").text().to_owned();
            let item = |own: &Field<'_>, errors: &mut FieldErrors| {
                dns_label(&own.get("name"), errors);
                devices(own, stored, errors);
            };
            distinct(&alternatives, Some(MOST_ALTERNATIVES), key, item, errors);
        }
    }
}

/// Validates class, selectors and number of the requested devices.
fn devices(request: &Field<'_>, stored: bool, errors: &mut FieldErrors) {
    let (class, mode, count) =
        (request.get("deviceClassName"), request.get("allocationMode"), request.get("count"));
    if class.is_empty() {
        errors.add(|| class.required(""));
    } else {
        subdomain(&class, errors);
    }
    selectors(&request.get("selectors"), stored, errors);
    let number = count.integer().unwrap_or_default();
    match mode.text() {
        "All" if number != 0 => {
            errors.add(|| count.invalid("must not be specified when allocationMode is 'All'"));
        }
        "ExactCount" if number <= 0 => errors.add(|| count.invalid_as(number, "must be greater than zero")),
        "All" | "ExactCount" => {}
        _ => errors.add(|| mode.not_supported(&["All", "ExactCount"])),
    }
    tolerations(&request.get("tolerations"), errors);
}

fn constraint(constraint: &Field<'_>, names: &Names<'_>, errors: &mut FieldErrors) {
    let (same, distinct) = (constraint.get("matchAttribute"), constraint.get("distinctAttribute"));
    names.check_list(&constraint.get("requests"), errors);
    if same.is_set() {
        fully_qualified_name(&same, errors);
    } else if distinct.is_set() {
        fully_qualified_name(&distinct, errors);
    } else {
        let why = "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, but multiple fields are set";
        errors.add(|| constraint.required(why));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn alternatives_are_named_and_counted() {
        let mut spec = json!({"devices": {
            "requests": [{"name": "r", "firstAvailable": [
                {"name": "a", "deviceClassName": "c"},
                {"name": "a", "deviceClassName": "c", "allocationMode": "All", "count": 2,
                    "tolerations": [{"key": "k", "value": "v", "operator": "Exists"}]},
            ]}],
            "config": [{"requests": ["r/a", "r/b", "s"], "opaque": {"driver": "d", "parameters": {}}}],
        }});
        default(&mut spec);
        let mut errors = FieldErrors::default();
        validate(&Field::root(&spec), false, &mut errors);
        let texts: Vec<String> = errors.into_iter().map(|error| error.to_string()).collect();
        let at = "devices.requests[0].firstAvailable[1]";
        assert_eq!(
            texts,
            [
                format!("{at}.count: Invalid value: 2: must not be specified when allocationMode is 'All'"),
                format!(
                    "{at}.tolerations[0].value: Invalid value: \"v\": must be empty for operator `Exists`"
                ),
                format!("{at}: Duplicate value: \"a\""),
                format!("devices.config[0].requests[1]: Invalid value: \"r/b\": {NO_REQUEST}"),
                format!("devices.config[0].requests[2]: Invalid value: \"s\": {NO_REQUEST}"),
            ]
        );
    }
}
