//! Validates which fields a pod may have on its operating system.

use admit_apimachinery::findings::FieldErrors;

use super::all_containers;
use crate::kinds::field::Field;

const OF_LINUX: &str = "cannot be set for a windows pod";

const BEFORE: [&str; 2] = ["appArmorProfile", "seLinuxOptions"];
const BETWEEN: [&str; 4] = ["seccompProfile", "fsGroup", "fsGroupChangePolicy", "sysctls"];
const AFTER: [&str; 5] =
    ["runAsUser", "runAsGroup", "supplementalGroups", "supplementalGroupsPolicy", "seLinuxChangePolicy"];

const CONTAINERS: [&str; 10] = [
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
];

/// Validates a specification for its operating system.
pub(super) fn validate(spec: &Field<'_>, errors: &mut FieldErrors) {
    let system = spec.get("os");
    let name = system.get("name");
    match name.text() {
        _ if !system.is_set() => {}
        "" => errors.add(|| name.required("")),
        "linux" => linux(spec, errors),
        "windows" => windows(spec, errors),
        _ => errors.add(|| system.with(name.value()).not_supported(&["linux", "windows"])),
    }
}

fn linux(spec: &Field<'_>, errors: &mut FieldErrors) {
    let owners = std::iter::once(spec.clone()).chain(all_containers(spec));
    for options in owners.map(|owner| owner.get("securityContext").get("windowsOptions")) {
        if options.is_set() {
            errors.add(|| options.forbidden("windows options cannot be set for a linux pod"));
        }
    }
}

fn windows(spec: &Field<'_>, errors: &mut FieldErrors) {
    let context = spec.get("securityContext");
    let mut refuse = |field: Field<'_>| {
        // An empty list counts as absent.
        if field.is_set() && field.value().as_array().is_none_or(|items| !items.is_empty()) {
            errors.add(|| field.forbidden(OF_LINUX));
        }
    };
    BEFORE.iter().for_each(|name| refuse(context.get(name)));
    refuse(spec.get("hostUsers"));
    ["hostPID", "hostIPC"]
        .into_iter()
        .filter(|name| spec.get(name).flag())
        .for_each(|name| refuse(spec.get(name)));
    BETWEEN.iter().for_each(|name| refuse(context.get(name)));
    refuse(spec.get("shareProcessNamespace"));
    AFTER.iter().for_each(|name| refuse(context.get(name)));
    for container in all_containers(spec) {
        let context = container.get("securityContext");
        CONTAINERS.iter().for_each(|name| refuse(context.get(name)));
    }
}
