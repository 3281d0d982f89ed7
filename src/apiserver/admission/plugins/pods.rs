//! Parts of pods that several plugins look at.

use serde_json::Value;

use crate::object;

/// The annotation of a pod that a kubelet runs by itself, and that is stored only to be seen.
const MIRROR: &str = "kubernetes.io/config.mirror";

pub(super) fn is_mirror(pod: &Value) -> bool {
    object::meta_map(pod, "annotations").any(|(key, _)| key == MIRROR)
}

/// The text at this path; empty when there is none.
pub(super) fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The items of the list at this path.
pub(super) fn items<'v>(value: &'v Value, pointer: &str) -> impl Iterator<Item = &'v Value> + use<'v> {
    value.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

/// The lists of containers that a pod starts with.
pub(super) const STARTED: [&str; 2] = ["/spec/initContainers", "/spec/containers"];

/// The lists of all containers of a pod.
pub(super) const CONTAINERS: [&str; 3] = [STARTED[0], STARTED[1], "/spec/ephemeralContainers"];

/// Sources of volumes with a secret, and where its name is.
const SECRET_SOURCES: [&str; 11] = [
    "/azureFile/secretName",
    "/cephfs/secretRef/name",
    "/cinder/secretRef/name",
    "/csi/nodePublishSecretRef/name",
    "/flexVolume/secretRef/name",
    "/iscsi/secretRef/name",
    "/rbd/secretRef/name",
    "/scaleIO/secretRef/name",
    "/secret/secretName",
    "/storageos/secretRef/name",
    "/secretRef/name",
];

/// The names of the secrets that the pod uses.
pub(super) fn secrets(pod: &Value) -> impl Iterator<Item = &str> {
    let pulled = items(pod, "/spec/imagePullSecrets").map(|secret| text(secret, "/name"));
    let containers = CONTAINERS.into_iter().flat_map(|list| items(pod, list));
    let read = containers.flat_map(|container| {
        let all = items(container, "/envFrom").filter_map(|source| source.pointer("/secretRef/name"));
        all.chain(
            items(container, "/env").filter_map(|variable| variable.pointer("/valueFrom/secretKeyRef/name")),
        )
    });
    let volumes = items(pod, "/spec/volumes").flat_map(|volume| {
        let own = SECRET_SOURCES.into_iter().filter_map(|source| volume.pointer(source));
        own.chain(items(volume, "/projected/sources").filter_map(|source| source.pointer("/secret/name")))
    });
    pulled.chain(read.chain(volumes).filter_map(Value::as_str)).filter(|name| !name.is_empty())
}
