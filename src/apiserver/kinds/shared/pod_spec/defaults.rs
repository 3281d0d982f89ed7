//! Default values of pod specifications: in pods and templates alike, and in pods alone.
//!
//! The counterpart of kubernetes `pkg/apis/core/v1/defaults.go`.

use serde_json::{Map, Value, json};

use crate::kinds::shared::defaults::{each, set_absent};
use crate::kinds::shared::image;
use crate::object;

const LISTS: [&str; 3] = ["containers", "initContainers", "ephemeralContainers"];
/// The resources that a pod may ask for as a whole.
const POD_LEVEL: [&str; 2] = ["cpu", "memory"];

/// What both pods and templates get.
pub(crate) fn fill(spec: &mut Value) {
    set_absent(
        spec,
        &[
            ("restartPolicy", json!("Always")),
            ("terminationGracePeriodSeconds", json!(30)),
            ("dnsPolicy", json!("ClusterFirst")),
            ("securityContext", json!({})),
            ("schedulerName", json!("default-scheduler")),
        ],
    );
    // The older name of the same field is kept beside the newer one.
    if let Some(account) = spec.get("serviceAccountName").cloned() {
        set_absent(spec, &[("serviceAccount", account)]);
    } else if let Some(account) = spec.get("serviceAccount").cloned() {
        set_absent(spec, &[("serviceAccountName", account)]);
    }
    for list in LISTS {
        each(spec, list).for_each(container);
    }
    each(spec, "volumes").for_each(volume);
}

/// What pods get and templates do not: limits are requests, too, unless those are told.
pub(crate) fn fill_pod(spec: &mut Value) {
    set_absent(spec, &[("enableServiceLinks", json!(true))]);
    for list in ["containers", "initContainers"] {
        each(spec, list).for_each(|container| request_limits(container, |_| true));
    }
    let asked = |name: &str| {
        let containers =
            ["containers", "initContainers"].into_iter().filter_map(|list| spec.get(list)?.as_array());
        containers
            .flatten()
            .any(|container| container.pointer(&format!("/resources/requests/{name}")).is_some())
    };
    // What containers ask for would be summed up.
    let unasked: Vec<&str> = POD_LEVEL.into_iter().filter(|name| !asked(name)).collect();
    request_limits(spec, |name| unasked.contains(&name));
}

/// Limits that are `chosen` become requests where there are none.
fn request_limits(owner: &mut Value, chosen: impl Fn(&str) -> bool) {
    let limits = owner.pointer("/resources/limits").and_then(Value::as_object).cloned().unwrap_or_default();
    let missing: Map<String, Value> = limits.into_iter().filter(|(name, _)| chosen(name)).collect();
    if missing.is_empty() {
        return;
    }
    let requests = object::member_mut(object::map_of(&mut owner["resources"]), "requests");
    for (name, limit) in missing {
        requests.entry(name).or_insert(limit);
    }
    requests.sort_keys();
}

fn container(container: &mut Value) {
    let image = container.get("image").and_then(Value::as_str).unwrap_or_default();
    let pull = if image::is_latest(image) { "Always" } else { "IfNotPresent" };
    set_absent(
        container,
        &[
            ("resources", json!({})),
            ("terminationMessagePath", json!("/dev/termination-log")),
            ("terminationMessagePolicy", json!("File")),
            ("imagePullPolicy", pull.into()),
        ],
    );
    for port in each(container, "ports") {
        set_absent(port, &[("protocol", json!("TCP"))]);
    }
    for variable in each(container, "env") {
        field_ref(variable.pointer_mut("/valueFrom/fieldRef"));
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let Some(probe) = container.get_mut(probe) else { continue };
        set_absent(
            probe,
            &[
                ("timeoutSeconds", json!(1)),
                ("periodSeconds", json!(10)),
                ("successThreshold", json!(1)),
                ("failureThreshold", json!(3)),
            ],
        );
        http_get(probe);
        if let Some(grpc) = probe.get_mut("grpc") {
            set_absent(grpc, &[("service", json!(""))]);
        }
    }
    for hook in ["postStart", "preStop"] {
        container.pointer_mut(&format!("/lifecycle/{hook}")).into_iter().for_each(http_get);
    }
}

fn http_get(action: &mut Value) {
    if let Some(get) = action.get_mut("httpGet") {
        set_absent(get, &[("path", json!("/")), ("scheme", json!("HTTP"))]);
    }
}

fn field_ref(reference: Option<&mut Value>) {
    if let Some(reference) = reference {
        set_absent(reference, &[("apiVersion", json!("v1"))]);
    }
}

/// A volume that names no source is an empty directory.
fn volume(volume: &mut Value) {
    let mode = || [("defaultMode", json!(0o644))];
    if volume.as_object().is_none_or(|fields| fields.keys().all(|field| field == "name")) {
        set_absent(volume, &[("emptyDir", json!({}))]);
    }
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = volume.get_mut(source) {
            set_absent(source, &mode());
        }
    }
    for (source, defaults) in [
        ("hostPath", vec![("type", json!(""))]),
        ("iscsi", vec![("iscsiInterface", json!("default"))]),
        (
            "rbd",
            vec![("pool", json!("rbd")), ("user", json!("admin")), ("keyring", json!("/etc/ceph/keyring"))],
        ),
        ("scaleIO", vec![("storageMode", json!("ThinProvisioned")), ("fsType", json!("xfs"))]),
        (
            "azureDisk",
            vec![
                ("cachingMode", json!("ReadWrite")),
                ("fsType", json!("ext4")),
                ("kind", json!("Shared")),
                ("readOnly", json!(false)),
            ],
        ),
    ] {
        if let Some(source) = volume.get_mut(source) {
            set_absent(source, &defaults);
        }
    }
    if let Some(claim) = volume.pointer_mut("/ephemeral/volumeClaimTemplate/spec") {
        set_absent(claim, &[("volumeMode", json!("Filesystem"))]);
    }
    let items_of =
        |items: &mut Value| each(items, "items").for_each(|item| field_ref(item.get_mut("fieldRef")));
    if let Some(source) = volume.get_mut("downwardAPI") {
        items_of(source);
    }
    if let Some(source) = volume.get_mut("projected") {
        for source in each(source, "sources") {
            if let Some(items) = source.get_mut("downwardAPI") {
                items_of(items);
            }
            if let Some(token) = source.get_mut("serviceAccountToken") {
                set_absent(token, &[("expirationSeconds", json!(3600))]);
            }
        }
    }
}
