//! Validates probes and lifecycle hooks of containers.

use admit_apimachinery::findings::FieldErrors;

use super::{Pod, ports};
use crate::kinds::field::Field;

/// Validates the hooks and probes of a container.
pub(super) fn of_container(container: &Field<'_>, pod: &Pod<'_>, errors: &mut FieldErrors) {
    let lifecycle = container.get("lifecycle");
    for hook in ["postStart", "preStop"].into_iter().map(|name| lifecycle.get(name)).filter(Field::is_set) {
        handler(&hook, pod, &["exec", "httpGet", "tcpSocket", "sleep"], errors);
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let given = container.get(name);
        if !given.is_set() {
            continue;
        }
        probe(&given, pod, errors);
        let (threshold, grace) = (given.get("successThreshold"), given.get("terminationGracePeriodSeconds"));
        if name == "readinessProbe" {
            if grace.is_set() {
                errors.add(|| grace.invalid("must not be set for readinessProbes"));
            }
        } else if threshold.integer() != Some(1) {
            errors.add(|| threshold.invalid_as(threshold.integer().unwrap_or(0), "must be 1"));
        }
    }
}

fn probe(probe: &Field<'_>, pod: &Pod<'_>, errors: &mut FieldErrors) {
    handler(probe, pod, &["exec", "httpGet", "tcpSocket", "grpc"], errors);
    for name in
        ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"]
    {
        probe.get(name).not_negative(errors);
    }
    let grace = probe.get("terminationGracePeriodSeconds");
    if grace.integer().is_some_and(|seconds| seconds <= 0) {
        errors.add(|| grace.invalid("must be greater than 0"));
    }
}

/// Requires exactly one of the actions.
fn handler(handler: &Field<'_>, pod: &Pod<'_>, actions: &[&'static str], errors: &mut FieldErrors) {
    let mut has_one = false;
    for name in actions.iter().copied() {
        let action = handler.get(name);
        if !action.is_set() {
            continue;
        }
        if has_one {
            errors.add(|| action.forbidden("may not specify more than 1 handler type"));
            continue;
        }
        has_one = true;
        match name {
            "exec" if action.get("command").is_empty() => errors.add(|| action.get("command").required("")),
            "exec" => {}
            "httpGet" => http_get(&action, errors),
            "sleep" => sleep(&action, pod, errors),
            _ => ports::number_or_name(&action.get("port"), errors),
        }
    }
    if !has_one {
        errors.add(|| handler.required("must specify a handler type"));
    }
}

fn http_get(action: &Field<'_>, errors: &mut FieldErrors) {
    let (path, scheme) = (action.get("path"), action.get("scheme"));
    if path.text().is_empty() {
        errors.add(|| path.required(""));
    }
    ports::number_or_name(&action.get("port"), errors);
    if !["HTTP", "HTTPS"].contains(&scheme.text()) {
        errors.add(|| scheme.not_supported(&["HTTP", "HTTPS"]));
    }
    let headers = action.get("httpHeaders");
    for header in headers.items() {
        let name = header.get("name").text();
        let is_name =
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        if !is_name {
            let why = "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex \
                       used for validation is '[-A-Za-z0-9]+')";
            errors.add(|| headers.invalid_as(name, why));
        }
    }
}

fn sleep(action: &Field<'_>, pod: &Pod<'_>, errors: &mut FieldErrors) {
    // A missing grace period is reported elsewhere.
    let (Some(grace), seconds) = (pod.grace, action.get("seconds").integer().unwrap_or(0)) else { return };
    if !(0..=grace).contains(&seconds) {
        let why = format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
        errors.add(|| action.invalid_as(seconds, why));
    }
}
