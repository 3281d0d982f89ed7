//! Sets default values of pod specifications: in both pods and templates, and in pods only.
//!
//! The counterpart of kubernetes `pkg/apis/core/v1/defaults.go`.

use serde_json::{Map, Value, json};

use super::resources;
use crate::kinds::field::Field;
use crate::kinds::shared::defaults::{each, set_absent};
use crate::kinds::shared::image;
use crate::kinds::shared::resource_names::is_huge_page;
use crate::object;

const LISTS: [&str; 3] = ["containers", "initContainers", "ephemeralContainers"];
/// The resources that can be set for the pod as a whole.
const POD_LEVEL: [&str; 2] = ["cpu", "memory"];

/// Sets the defaults of both pods and templates.
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
    // The deprecated name of the field is that of the other, and counts where the other is not set.
    let is_set = |account: &&Value| account.as_str().is_some_and(|name| !name.is_empty());
    let fields = ["serviceAccountName", "serviceAccount"];
    if let Some(account) = fields.iter().find_map(|name| spec.get(name).filter(is_set)).cloned() {
        spec["serviceAccountName"] = account.clone();
        spec["serviceAccount"] = account;
    }
    for list in LISTS {
        each(spec, list).for_each(container);
    }
    each(spec, "volumes").for_each(volume);
}

/// Sets the defaults of pods only: among others, missing requests are set to the limits.
pub(crate) fn fill_pod(spec: &mut Value) {
    set_absent(spec, &[("enableServiceLinks", json!(true))]);
    for list in ["containers", "initContainers"] {
        each(spec, list).for_each(|container| request_limits(container, |_| true));
    }
    of_the_whole(spec);
}

/// Completes pod-level resources if there are any: limits of huge pages, and requests, from the sums of the containers; then
/// missing requests from the limits.
fn of_the_whole(spec: &mut Value) {
    let is_told = |spec: &Value, side: &str| {
        let amounts = spec.pointer(&format!("/resources/{side}")).and_then(Value::as_object);
        amounts.is_some_and(|amounts| !amounts.is_empty())
    };
    if is_told(spec, "limits") || is_told(spec, "requests") {
        let is_asked =
            |name: &str| spec.pointer("/resources/requests").is_some_and(|asked| asked.get(name).is_some());
        let pages =
            summed(spec, "limits").into_iter().filter(|(name, _)| is_huge_page(name) && !is_asked(name));
        let pages: Vec<(String, Value)> = pages.collect();
        add_absent(spec, "limits", pages);
    }
    if is_told(spec, "limits") {
        let asked =
            summed(spec, "requests").into_iter().filter(|(name, _)| POD_LEVEL.contains(&name.as_str()));
        let asked: Vec<(String, Value)> = asked.collect();
        add_absent(spec, "requests", asked);
        request_limits(spec, |name| POD_LEVEL.contains(&name) || is_huge_page(name));
    }
}

/// Returns the sums over the containers.
fn summed(spec: &Value, side: &'static str) -> Vec<(String, Value)> {
    let sums = resources::of_containers(&Field::root(spec), side);
    sums.into_iter().map(|(name, sum)| (name.to_owned(), sum.to_string().into())).collect()
}

fn add_absent(spec: &mut Value, side: &str, amounts: Vec<(String, Value)>) {
    if amounts.is_empty() {
        return;
    }
    let own = object::member_mut(object::map_of(&mut spec["resources"]), side);
    for (name, amount) in amounts {
        own.entry(name).or_insert(amount);
    }
    own.sort_keys();
}

/// Sets missing requests to those limits that are `chosen`.
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

/// Returns the default pull policy of an image.
fn pull_policy(image: Option<&Value>) -> &'static str {
    let image = image.and_then(Value::as_str).unwrap_or_default();
    if image::is_latest(image) { "Always" } else { "IfNotPresent" }
}

fn container(container: &mut Value) {
    let pull = pull_policy(container.get("image"));
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

/// A volume without source is an empty directory.
fn volume(volume: &mut Value) {
    let mode = || [("defaultMode", json!(0o644))];
    if volume.as_object().is_none_or(|fields| fields.keys().all(|field| field == "name")) {
        set_absent(volume, &[("emptyDir", json!({}))]);
    }
    if let Some(image) = volume.get_mut("image").filter(|image| image.is_object()) {
        let pull = pull_policy(image.get("reference"));
        set_absent(image, &[("pullPolicy", pull.into())]);
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
