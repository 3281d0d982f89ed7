//! Validates security contexts of pods and containers.

use std::collections::HashSet;

use admit_apimachinery::findings::FieldErrors;

use super::{Options, Pod, all_containers, descending_path, known_if_set, privileged, windows};
use crate::kinds::field::Field;
use crate::kinds::shared::internal;

/// Validates the security context of a pod.
pub(super) fn of_pod(spec: &Field<'_>, options: &Options<'_>, errors: &mut FieldErrors) {
    let context = spec.get("securityContext");
    for name in ["fsGroup", "runAsUser", "runAsGroup"] {
        user(&context.get(name), errors);
    }
    for group in context.get("supplementalGroups").items() {
        user(&group, errors);
    }
    if spec.get("shareProcessNamespace").flag() && spec.get("hostPID").flag() {
        let shared = context.get("shareProcessNamespace");
        let why = "ShareProcessNamespace and HostPID cannot both be enabled";
        errors.add(|| shared.invalid_as(true, why));
    }
    sysctls(spec, options, errors);
    known_if_set(&context.get("fsGroupChangePolicy"), &["Always", "OnRootMismatch"], errors);
    seccomp_profile(&context.get("seccompProfile"), errors);
    windows::options(&context.get("windowsOptions"), errors);
    app_armor_profile(&context.get("appArmorProfile"), errors);
    known_if_set(&context.get("supplementalGroupsPolicy"), &["Merge", "Strict"], errors);
    let changes: &[&str] =
        if options.any_relabelling { &["MountOption", "Recursive"] } else { &["Recursive"] };
    known_if_set(&context.get("seLinuxChangePolicy"), changes, errors);
}

fn user(id: &Field<'_>, errors: &mut FieldErrors) {
    id.in_range(0, i64::from(i32::MAX), errors);
}

fn sysctls(spec: &Field<'_>, options: &Options<'_>, errors: &mut FieldErrors) {
    let mut names = HashSet::new();
    for sysctl in spec.get("securityContext").get("sysctls").items() {
        let name = sysctl.get("name");
        if name.text().is_empty() {
            errors.add(|| name.required(""));
        } else if !is_sysctl(name.text()) {
            let why = r"must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
            errors.add(|| name.invalid(why));
        } else if names.contains(name.text()) {
            errors.add(|| name.duplicate());
        }
        names.insert(name.text());
        if options.host_sysctls {
            continue;
        }
        for (shared, is_of) in
            [("hostNetwork", is_of_network as fn(&str) -> bool), ("hostIPC", is_of_ipc as fn(&str) -> bool)]
        {
            if spec.get(shared).flag() && is_of(name.text()) {
                errors.add(|| name.invalid(format!("may not be specified when '{shared}' is true")));
                break;
            }
        }
    }
}

fn is_sysctl(name: &str) -> bool {
    let is_end = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_segment = |segment: &str| {
        let bytes = segment.as_bytes();
        bytes.first().is_some_and(is_end)
            && bytes.last().is_some_and(is_end)
            && bytes.iter().all(|byte| is_end(byte) || matches!(byte, b'-' | b'_'))
    };
    name.len() <= 253 && name.split(['.', '/']).all(is_segment)
}

/// Splits a sysctl name at its dots or slashes, whichever come first.
fn parts(name: &str) -> impl Iterator<Item = &str> {
    let separator = name.find(['.', '/']).and_then(|at| name.get(at..)).and_then(|rest| rest.chars().next());
    name.split(separator.unwrap_or('.'))
}

/// Whether a sysctl belongs to a network namespace.
pub(super) fn is_of_network(name: &str) -> bool {
    parts(name).next() == Some("net")
}

/// Whether a sysctl belongs to an IPC namespace.
pub(super) fn is_of_ipc(name: &str) -> bool {
    let mut parts = parts(name);
    match (parts.next(), parts.next()) {
        (Some("fs"), Some("mqueue")) => true,
        (Some("kernel"), Some(second)) => {
            second == "sem" || second.starts_with("shm") || second.starts_with("msg")
        }
        _ => false,
    }
}

fn seccomp_profile(profile: &Field<'_>, errors: &mut FieldErrors) {
    if !profile.is_set() {
        return;
    }
    let (kind, path) = (profile.get("type"), profile.get("localhostProfile"));
    match kind.text() {
        "" => errors.add(|| kind.required("type is required when seccompProfile is set")),
        _ => kind.one_of(&PROFILES, errors),
    }
    match (kind.text(), path.is_set()) {
        ("Localhost", true) => descending_path(&path, errors),
        ("Localhost", false) => {
            errors.add(|| path.required("must be set when seccomp type is Localhost"));
        }
        (_, true) => {
            let shown = || internal::shown(profile, "io.k8s.api.core.v1.SeccompProfile");
            errors.add(|| path.invalid_as(shown(), "can only be set when seccomp type is Localhost"));
        }
        (_, false) => {}
    }
}

const PROFILES: [&str; 3] = ["Localhost", "RuntimeDefault", "Unconfined"];
/// Most bytes of a profile's path.
const LONGEST_PROFILE: i64 = 4095;

pub(crate) fn app_armor_profile(profile: &Field<'_>, errors: &mut FieldErrors) {
    if !profile.is_set() {
        return;
    }
    const MISSING: &str = "must be set when AppArmor type is Localhost";
    let (kind, name) = (profile.get("type"), profile.get("localhostProfile"));
    match kind.text() {
        "Localhost" if !name.is_set() => errors.add(|| name.required(MISSING)),
        "Localhost" => {
            let trimmed = name.text().trim();
            if trimmed != name.text() {
                errors.add(|| name.invalid("must not be padded with whitespace"));
            } else if trimmed.is_empty() {
                errors.add(|| name.required(MISSING));
            }
            if i64::try_from(name.text().len()).is_ok_and(|length| length > LONGEST_PROFILE) {
                errors.add(|| name.too_long(LONGEST_PROFILE));
            }
        }
        "RuntimeDefault" | "Unconfined" if name.is_set() => {
            errors.add(|| name.invalid("can only be set when AppArmor type is Localhost"));
        }
        "RuntimeDefault" | "Unconfined" => {}
        "" => errors.add(|| kind.required("type is required when appArmorProfile is set")),
        _ => errors.add(|| kind.not_supported(&PROFILES)),
    }
}

/// Validates the security context of a container.
pub(super) fn of_container(context: &Field<'_>, pod: &Pod<'_>, errors: &mut FieldErrors) {
    if !context.is_set() {
        return;
    }
    let whole = context.get("privileged");
    if whole.flag() && privileged::are_refused() {
        errors.add(|| whole.forbidden("disallowed by cluster policy"));
    }
    user(&context.get("runAsUser"), errors);
    user(&context.get("runAsGroup"), errors);
    let mount = context.get("procMount");
    known_if_set(&mount, &["Default", "Unmasked"], errors);
    if pod.host_users && mount.text() == "Unmasked" {
        errors.add(|| mount.invalid("`hostUsers` must be false to use `Unmasked`"));
    }
    seccomp_profile(&context.get("seccompProfile"), errors);
    if context.get("allowPrivilegeEscalation").value() == false {
        escalation(context, errors);
    }
    windows::options(&context.get("windowsOptions"), errors);
    app_armor_profile(&context.get("appArmorProfile"), errors);
}

fn escalation(context: &Field<'_>, errors: &mut FieldErrors) {
    let shown = || internal::shown(context, "io.k8s.api.core.v1.SecurityContext");
    if context.get("privileged").flag() {
        let why = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
        errors.add(|| context.invalid_as(shown(), why));
    }
    for added in context.get("capabilities").get("add").items() {
        if added.text() == "CAP_SYS_ADMIN" {
            let why = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN";
            errors.add(|| context.invalid_as(shown(), why));
        }
    }
}

/// A pod with a user namespace may not use the host's network, PID and IPC namespaces.
pub(super) fn host_users(spec: &Field<'_>, options: &Options<'_>, errors: &mut FieldErrors) {
    if !has_own_users(spec) {
        return;
    }
    const OWN_USERS: &str = "when `hostUsers` is false";
    for (field, told_as) in [("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")] {
        if spec.get(field).flag() && (field != "hostNetwork" || !options.own_users_in_host_network) {
            errors.add(|| spec.get(told_as).forbidden(OWN_USERS));
        }
    }
    if !options.devices_of_own_users {
        let devices = all_containers(spec).map(|container| container.get("volumeDevices"));
        for devices in devices.filter(|devices| !devices.is_empty()) {
            errors.add(|| devices.forbidden(OWN_USERS));
        }
    }
}

/// Whether the pod has a user namespace.
pub(super) fn has_own_users(spec: &Field<'_>) -> bool {
    spec.get("hostUsers").value() == false
}
