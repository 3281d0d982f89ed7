//! Defines the checks of the level `restricted`, which requires hardening beyond `baseline`.

use std::collections::BTreeSet;

use serde_json::Value;

use super::baseline;
use super::setters::{Setters, containers, named, plural, quoted};
use super::subject::{Check, Failure, Row, Subject};
use crate::admission::plugins::pods::{items, text};

/// The checks, sorted by name.
pub(super) const CHECKS: &[Row] = &[
    row("allowPrivilegeEscalation", &[(8, escalation), (25, escalation_of_25)], None),
    row(
        "capabilities_restricted",
        &[(22, capabilities), (25, capabilities_of_25)],
        Some("capabilities_baseline"),
    ),
    row("procMount_restricted", &[(35, baseline::proc_mount)], Some("procMount")),
    row("restrictedVolumes", &[(0, volumes)], Some("hostPathVolumes")),
    row("runAsNonRoot", &[(0, non_root), (35, non_root_of_35)], None),
    row("runAsUser", &[(23, user), (35, user_of_35)], None),
    row("seccompProfile_restricted", &[(19, seccomp), (25, seccomp_of_25)], Some("seccompProfile_baseline")),
];

const fn row(id: &'static str, versions: &'static [(u32, Check)], overrides: Option<&'static str>) -> Row {
    Row { id, versions, overrides }
}

fn escalation(subject: &Subject<'_>) -> Option<Failure> {
    let is_bad = |container: &Value| {
        container.pointer("/securityContext/allowPrivilegeEscalation") != Some(&Value::Bool(false))
    };
    let bad = named(subject, is_bad);
    (!bad.is_empty()).then(|| Failure {
        reason: "allowPrivilegeEscalation != false",
        detail: format!("{} must set securityContext.allowPrivilegeEscalation=false", containers(&bad)),
    })
}

fn escalation_of_25(subject: &Subject<'_>) -> Option<Failure> {
    if subject.is_of_windows() { None } else { escalation(subject) }
}

fn capabilities(subject: &Subject<'_>) -> Option<Failure> {
    let bad = named(subject, |container| {
        !items(container, "/securityContext/capabilities/drop").any(|name| name == "ALL")
    });
    let missing = (!bad.is_empty())
        .then(|| format!("{} must set securityContext.capabilities.drop=[\"ALL\"]", containers(&bad)));
    let added = baseline::added(subject, &["NET_BIND_SERVICE"]);
    let details: Vec<String> = missing.into_iter().chain(added).collect();
    (!details.is_empty()).then(|| Failure { reason: "unrestricted capabilities", detail: details.join("; ") })
}

fn capabilities_of_25(subject: &Subject<'_>) -> Option<Failure> {
    if subject.is_of_windows() { None } else { capabilities(subject) }
}

fn volumes(subject: &Subject<'_>) -> Option<Failure> {
    const ALLOWED: [&str; 9] = [
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    ];
    const OTHERS: [&str; 21] = [
        "hostPath",
        "gcePersistentDisk",
        "awsElasticBlockStore",
        "gitRepo",
        "nfs",
        "iscsi",
        "glusterfs",
        "rbd",
        "flexVolume",
        "cinder",
        "cephfs",
        "flocker",
        "fc",
        "azureFile",
        "vsphereVolume",
        "quobyte",
        "azureDisk",
        "photonPersistentDisk",
        "portworxVolume",
        "scaleIO",
        "storageos",
    ];
    let has = |volume: &Value, source: &str| volume.get(source).is_some_and(Value::is_object);
    let bad = subject.volumes().filter(|volume| !ALLOWED.iter().any(|source| has(volume, source)));
    let (names, kinds): (Vec<&str>, BTreeSet<&str>) = bad
        .map(|volume| {
            let kind = OTHERS.into_iter().find(|source| has(volume, source));
            (text(volume, "/name"), kind.unwrap_or("unknown"))
        })
        .unzip();
    (!names.is_empty()).then(|| Failure {
        reason: "restricted volume types",
        detail: format!(
            "{} {} {} {} {}",
            plural("volume", "volumes", names.len()),
            quoted(names.iter().copied()),
            plural("uses", "use", names.len()),
            plural("restricted volume type", "restricted volume types", kinds.len()),
            quoted(kinds)
        ),
    })
}

fn non_root(subject: &Subject<'_>) -> Option<Failure> {
    const REASON: &str = "runAsNonRoot != true";
    let setters = Setters::of(subject, "/runAsNonRoot", |own| own == &Value::Bool(false));
    if !setters.is_empty() {
        let detail =
            format!("{} must not set securityContext.runAsNonRoot=false", setters.told().join(" and "));
        return Some(Failure { reason: REASON, detail });
    }
    let silent = silent(subject, "/runAsNonRoot")?;
    let detail = format!("pod or {} must set securityContext.runAsNonRoot=true", containers(&silent));
    Some(Failure { reason: REASON, detail })
}

/// Returns the containers that leave a field unset which the pod leaves unset, too.
fn silent<'o>(subject: &Subject<'o>, field: &str) -> Option<Vec<&'o str>> {
    let pointer = format!("/securityContext{field}");
    if subject.at(&pointer).is_some() {
        return None;
    }
    let silent = named(subject, |container| container.pointer(&pointer).is_none_or(Value::is_null));
    (!silent.is_empty()).then_some(silent)
}

fn non_root_of_35(subject: &Subject<'_>) -> Option<Failure> {
    if subject.has_own_users() { None } else { non_root(subject) }
}

fn user(subject: &Subject<'_>) -> Option<Failure> {
    let setters = Setters::of(subject, "/runAsUser", |own| own.as_i64() == Some(0));
    (!setters.is_empty()).then(|| Failure {
        reason: "runAsUser=0",
        detail: format!("{} must not set runAsUser=0", setters.told().join(" and ")),
    })
}

fn user_of_35(subject: &Subject<'_>) -> Option<Failure> {
    if subject.has_own_users() { None } else { user(subject) }
}

fn seccomp(subject: &Subject<'_>) -> Option<Failure> {
    if let Some(failure) = baseline::seccomp(subject) {
        return Some(failure);
    }
    let silent = silent(subject, "/seccompProfile")?;
    Some(Failure {
        reason: "seccompProfile",
        detail: format!(
            "pod or {} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\"",
            containers(&silent)
        ),
    })
}

fn seccomp_of_25(subject: &Subject<'_>) -> Option<Failure> {
    if subject.is_of_windows() { None } else { seccomp(subject) }
}
