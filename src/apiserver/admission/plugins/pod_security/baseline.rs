//! Defines the checks of the level `baseline`, which forbids known privilege escalations.

use std::collections::BTreeSet;

use admit_apimachinery::go;
use serde_json::Value;

use super::setters::{Setters, containers, named, plural, quoted};
use super::subject::{Check, Failure, Row, Subject};
use crate::admission::plugins::pods::{items, text};

/// The checks, sorted by name.
pub(super) const CHECKS: &[Row] = &[
    row("appArmorProfile", &[(0, app_armor)]),
    row("capabilities_baseline", &[(0, capabilities)]),
    row("hostNamespaces", &[(0, host_namespaces)]),
    row("hostPathVolumes", &[(0, host_paths)]),
    row("hostPorts", &[(0, host_ports)]),
    row("hostProbesAndHostLifecycle", &[(34, hosts_of_probes)]),
    row("privileged", &[(0, privileged)]),
    row("procMount", &[(0, proc_mount), (35, proc_mount_of_own_users)]),
    row("seLinuxOptions", &[(0, se_linux), (31, se_linux_of_31)]),
    row("seccompProfile_baseline", &[(0, seccomp_annotations), (19, seccomp)]),
    row("sysctls", &[(0, sysctls), (27, sysctls_of_27), (29, sysctls_of_29), (32, sysctls_of_32)]),
    row("windowsHostProcess", &[(0, host_process)]),
];

const fn row(id: &'static str, versions: &'static [(u32, Check)]) -> Row {
    Row { id, versions, overrides: None }
}

fn app_armor(subject: &Subject<'_>) -> Option<Failure> {
    const PREFIX: &str = "container.apparmor.security.beta.kubernetes.io/";
    let is_bad = |own: &'_ Value| !matches!(text(own, "/type"), "RuntimeDefault" | "Localhost");
    let setters = Setters::find(subject, "/appArmorProfile", |own| {
        if is_bad(own) { vec![text(own, "/type")] } else { Vec::new() }
    });
    let annotations = subject.annotations().filter(|(key, value)| {
        let is_fine = value.is_empty() || *value == "runtime/default" || value.starts_with("localhost/");
        key.starts_with(PREFIX) && !is_fine
    });
    let mut annotations: Vec<String> =
        annotations.map(|(key, value)| format!("{key}={}", go::quote(value))).collect();
    annotations.sort();
    let mut told = setters.told();
    if !annotations.is_empty() {
        told.push(plural("annotation", "annotations", annotations.len()).to_owned());
    }
    if told.is_empty() {
        return None;
    }
    let values: Vec<&str> =
        setters.values.iter().copied().chain(annotations.iter().map(String::as_str)).collect();
    Some(Failure {
        reason: plural("forbidden AppArmor profile", "forbidden AppArmor profiles", values.len()),
        detail: format!("{} must not set AppArmor profile type to {}", told.join(" and "), quoted(values)),
    })
}

fn capabilities(subject: &Subject<'_>) -> Option<Failure> {
    const ALLOWED: [&str; 13] = [
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    ];
    added(subject, &ALLOWED).map(|detail| Failure { reason: "non-default capabilities", detail })
}

/// Describes the containers that add capabilities beyond the allowed ones.
pub(super) fn added(subject: &Subject<'_>, allowed: &[&str]) -> Option<String> {
    let added = |container| items(container, "/securityContext/capabilities/add").filter_map(Value::as_str);
    let is_bad = |name: &&str| !allowed.contains(name);
    let bad = named(subject, |container| added(container).any(|name| is_bad(&name)));
    let names: BTreeSet<&str> = subject.containers().flat_map(added).filter(is_bad).collect();
    (!bad.is_empty()).then(|| {
        format!("{} must not include {} in securityContext.capabilities.add", containers(&bad), quoted(names))
    })
}

fn host_namespaces(subject: &Subject<'_>) -> Option<Failure> {
    let shared = ["hostNetwork", "hostPID", "hostIPC"].into_iter();
    let shared = shared.filter(|field| subject.at(&format!("/{field}")) == Some(&Value::Bool(true)));
    let shared: Vec<String> = shared.map(|field| format!("{field}=true")).collect();
    (!shared.is_empty()).then(|| Failure { reason: "host namespaces", detail: shared.join(", ") })
}

fn host_paths(subject: &Subject<'_>) -> Option<Failure> {
    let bad = subject.volumes().filter(|volume| volume.get("hostPath").is_some_and(Value::is_object));
    let bad: Vec<&str> = bad.map(|volume| text(volume, "/name")).collect();
    (!bad.is_empty()).then(|| Failure {
        reason: "hostPath volumes",
        detail: format!("{} {}", plural("volume", "volumes", bad.len()), quoted(bad.iter().copied())),
    })
}

fn host_ports(subject: &Subject<'_>) -> Option<Failure> {
    let ports = |container| {
        let ports =
            items(container, "/ports").filter_map(|port| port.get("hostPort").and_then(Value::as_i64));
        ports.filter(|port| *port != 0)
    };
    let bad = named(subject, |container| ports(container).next().is_some());
    let numbers: BTreeSet<String> =
        subject.containers().flat_map(ports).map(|port| port.to_string()).collect();
    (!bad.is_empty()).then(|| Failure {
        reason: "hostPort",
        detail: format!(
            "{} {} {} {}",
            containers(&bad),
            plural("uses", "use", bad.len()),
            plural("hostPort", "hostPorts", numbers.len()),
            numbers.into_iter().collect::<Vec<_>>().join(", ")
        ),
    })
}

fn hosts_of_probes(subject: &Subject<'_>) -> Option<Failure> {
    const HANDLERS: [&str; 5] =
        ["livenessProbe", "readinessProbe", "startupProbe", "lifecycle/postStart", "lifecycle/preStop"];
    let hosts = |container: &'_ Value| -> Vec<String> {
        let kinds =
            HANDLERS.into_iter().flat_map(|handler| ["httpGet", "tcpSocket"].map(|kind| (handler, kind)));
        let hosts =
            kinds.map(|(handler, kind)| text(container, &format!("/{handler}/{kind}/host")).to_owned());
        hosts.filter(|host| !host.is_empty()).collect()
    };
    let bad = named(subject, |container| !hosts(container).is_empty());
    let bad: Vec<&str> = bad.into_iter().collect::<BTreeSet<_>>().into_iter().collect();
    let hosts: BTreeSet<String> = subject.containers().flat_map(hosts).collect();
    (!bad.is_empty()).then(|| Failure {
        reason: "probe or lifecycle host",
        detail: format!(
            "{} {} {} {}",
            containers(&bad),
            plural("uses", "use", bad.len()),
            plural("probe or lifecycle host", "probe or lifecycle hosts", hosts.len()),
            quoted(hosts.iter().map(String::as_str))
        ),
    })
}

fn privileged(subject: &Subject<'_>) -> Option<Failure> {
    let is_bad =
        |container: &Value| container.pointer("/securityContext/privileged") == Some(&Value::Bool(true));
    let bad = named(subject, is_bad);
    (!bad.is_empty()).then(|| Failure {
        reason: "privileged",
        detail: format!("{} must not set securityContext.privileged=true", containers(&bad)),
    })
}

pub(super) fn proc_mount(subject: &Subject<'_>) -> Option<Failure> {
    let other = |container| {
        let mount = container_text(container, "/securityContext/procMount");
        mount.filter(|mount| *mount != "Default")
    };
    let bad = named(subject, |container| other(container).is_some());
    let mounts: BTreeSet<&str> = subject.containers().filter_map(other).collect();
    (!bad.is_empty()).then(|| Failure {
        reason: "procMount",
        detail: format!("{} must not set securityContext.procMount to {}", containers(&bad), quoted(mounts)),
    })
}

fn container_text<'o>(container: &'o Value, pointer: &str) -> Option<&'o str> {
    container.pointer(pointer).and_then(Value::as_str)
}

fn proc_mount_of_own_users(subject: &Subject<'_>) -> Option<Failure> {
    if subject.has_own_users() { None } else { proc_mount(subject) }
}

fn se_linux(subject: &Subject<'_>) -> Option<Failure> {
    se_linux_types(subject, &["", "container_t", "container_init_t", "container_kvm_t"])
}

fn se_linux_of_31(subject: &Subject<'_>) -> Option<Failure> {
    se_linux_types(subject, &["", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"])
}

fn se_linux_types(subject: &Subject<'_>, allowed: &[&str]) -> Option<Failure> {
    // Types as they are, user and role as `/field`, whose slash tells them apart.
    let setters = Setters::find(subject, "/seLinuxOptions", |own| {
        let kind = text(own, "/type");
        let kind = (!allowed.contains(&kind)).then_some(kind);
        let set = ["/user", "/role"].into_iter().filter(|field| !text(own, field).is_empty());
        kind.into_iter().chain(set).collect()
    });
    if setters.is_empty() {
        return None;
    }
    let types: Vec<&str> = setters.values.iter().copied().filter(|value| !value.starts_with('/')).collect();
    let mut told = Vec::new();
    if !types.is_empty() {
        told.push(format!("{} {}", plural("type", "types", types.len()), quoted(types)));
    }
    for field in ["user", "role"] {
        if setters.values.contains(format!("/{field}").as_str()) {
            told.push(format!("{field} may not be set"));
        }
    }
    Some(Failure {
        reason: "seLinuxOptions",
        detail: format!(
            "{} set forbidden securityContext.seLinuxOptions: {}",
            setters.told().join(" and "),
            told.join("; ")
        ),
    })
}

fn seccomp_annotations(subject: &Subject<'_>) -> Option<Failure> {
    const POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
    const CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
    let is_of_pod = |key: &str| {
        key == POD
            || key
                .strip_prefix(CONTAINER)
                .is_some_and(|name| subject.containers().any(|container| text(container, "/name") == name))
    };
    let is_fine = |value: &str| {
        matches!(value, "runtime/default" | "docker/default") || value.starts_with("localhost/")
    };
    let bad = subject.annotations().filter(|(key, value)| is_of_pod(key) && !is_fine(value));
    let bad: BTreeSet<String> = bad.map(|(key, value)| format!("{key}={}", go::quote(value))).collect();
    (!bad.is_empty()).then(|| Failure {
        reason: "seccompProfile",
        detail: format!(
            "forbidden {} {}",
            plural("annotation", "annotations", bad.len()),
            bad.into_iter().collect::<Vec<_>>().join(", ")
        ),
    })
}

pub(super) fn seccomp(subject: &Subject<'_>) -> Option<Failure> {
    let setters = Setters::find(subject, "/seccompProfile", |own| match text(own, "/type") {
        "RuntimeDefault" | "Localhost" => Vec::new(),
        other => vec![other],
    });
    (!setters.is_empty()).then(|| Failure {
        reason: "seccompProfile",
        detail: format!(
            "{} must not set securityContext.seccompProfile.type to {}",
            setters.told().join(" and "),
            quoted(setters.values.iter().copied())
        ),
    })
}

/// Namespaced sysctls, each with the Kubernetes minor version from which on it is allowed.
const SAFE_SYSCTLS: [(u32, &str); 12] = [
    (0, "kernel.shm_rmid_forced"),
    (0, "net.ipv4.ip_local_port_range"),
    (0, "net.ipv4.tcp_syncookies"),
    (0, "net.ipv4.ping_group_range"),
    (0, "net.ipv4.ip_unprivileged_port_start"),
    (27, "net.ipv4.ip_local_reserved_ports"),
    (29, "net.ipv4.tcp_keepalive_time"),
    (29, "net.ipv4.tcp_fin_timeout"),
    (29, "net.ipv4.tcp_keepalive_intvl"),
    (29, "net.ipv4.tcp_keepalive_probes"),
    (32, "net.ipv4.tcp_rmem"),
    (32, "net.ipv4.tcp_wmem"),
];

fn sysctls(subject: &Subject<'_>) -> Option<Failure> {
    sysctls_at(subject, 0)
}

fn sysctls_of_27(subject: &Subject<'_>) -> Option<Failure> {
    sysctls_at(subject, 27)
}

fn sysctls_of_29(subject: &Subject<'_>) -> Option<Failure> {
    sysctls_at(subject, 29)
}

fn sysctls_of_32(subject: &Subject<'_>) -> Option<Failure> {
    sysctls_at(subject, 32)
}

fn sysctls_at(subject: &Subject<'_>, version: u32) -> Option<Failure> {
    let is_safe = |name: &str| SAFE_SYSCTLS.iter().any(|(since, safe)| *since <= version && *safe == name);
    let set = subject.at("/securityContext").into_iter().flat_map(|context| items(context, "/sysctls"));
    let bad: Vec<&str> = set.map(|sysctl| text(sysctl, "/name")).filter(|name| !is_safe(name)).collect();
    (!bad.is_empty()).then(|| Failure { reason: "forbidden sysctls", detail: bad.join(", ") })
}

fn host_process(subject: &Subject<'_>) -> Option<Failure> {
    let setters = Setters::of(subject, "/windowsOptions/hostProcess", |own| own == &Value::Bool(true));
    (!setters.is_empty()).then(|| Failure {
        reason: "hostProcess",
        detail: format!(
            "{} must not set securityContext.windowsOptions.hostProcess=true",
            setters.told().join(" and ")
        ),
    })
}
