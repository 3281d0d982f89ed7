//! Finds the first API object that a pod refers to (`HasAPIObjectReference`): a mirror pod with references would let its
//! kubelet read those objects.

use admit_apimachinery::go;
use admit_apimachinery::pointer::{items, text};
use serde_json::Value;

use crate::kinds::shared::pod_uses;

/// Volume sources that refer to no API object.
const WITHOUT: [&str; 22] = [
    "awsElasticBlockStore",
    "azureDisk",
    "cephfs",
    "cinder",
    "downwardAPI",
    "emptyDir",
    "fc",
    "flexVolume",
    "flocker",
    "gcePersistentDisk",
    "gitRepo",
    "hostPath",
    "image",
    "iscsi",
    "nfs",
    "photonPersistentDisk",
    "portworxVolume",
    "quobyte",
    "rbd",
    "scaleIO",
    "storageos",
    "vsphereVolume",
];

/// Volume sources that refer to API objects, and the name of these in refusals; if a volume has two, the first counts.
const REFERRING: [(&str, &str); 7] = [
    ("configMap", "configmaps (via configmap volumes)"),
    ("secret", "secrets (via secret volumes)"),
    ("csi", "csidrivers (via CSI volumes)"),
    ("glusterfs", "endpoints (via glusterFS volumes)"),
    ("persistentVolumeClaim", "persistentvolumeclaims"),
    ("ephemeral", "persistentvolumeclaims (via ephemeral volumes)"),
    ("azureFile", "secrets (via azureFile volumes)"),
];

const PROJECTED: [(&str, &str); 5] = [
    ("configMap", "configmaps (via projected volumes)"),
    ("secret", "secrets (via projected volumes)"),
    ("serviceAccountToken", "serviceaccounts (via projected volumes)"),
    ("clusterTrustBundle", "clustertrustbundles"),
    ("podCertificate", "podcertificates"),
];

/// Returns the kind of the first reference of the pod, as refusals name it; None if it has none.
///
/// # Errors
/// If a volume has an unknown source.
pub(super) fn first(pod: &Value) -> Result<Option<&'static str>, UnknownSource> {
    let whole = [
        (!text(pod, "/spec/serviceAccountName").is_empty(), "serviceaccounts"),
        (pod_uses::secrets(pod).next().is_some(), "secrets"),
        (pod_uses::config_maps(pod).next().is_some(), "configmaps"),
        (!items(pod, "/spec/resourceClaims").is_empty(), "resourceclaims"),
    ];
    if let Some((_, kind)) = whole.into_iter().find(|(refers, _)| *refers) {
        return Ok(Some(kind));
    }
    for volume in items(pod, "/spec/volumes") {
        if let Some(kind) = of_volume(volume)? {
            return Ok(Some(kind));
        }
    }
    Ok(None)
}

/// A volume whose source is not known.
#[derive(Debug, thiserror::Error)]
pub(super) enum UnknownSource {
    #[error("unknown volume type for volume  {}", go::quote(.0))]
    Volume(String),
    #[error("unknown source for projected volume {}", go::quote(.0))]
    Projected(String),
}

fn of_volume(volume: &Value) -> Result<Option<&'static str>, UnknownSource> {
    let has = |given: &Value, source: &str| given.get(source).is_some_and(Value::is_object);
    let name = || text(volume, "/name").to_owned();
    if WITHOUT.into_iter().any(|source| has(volume, source)) {
        return Ok(None);
    }
    if let Some((_, kind)) = REFERRING.into_iter().find(|(source, _)| has(volume, source)) {
        return Ok(Some(kind));
    }
    if !has(volume, "projected") {
        return Err(UnknownSource::Volume(name()));
    }
    for given in items(volume, "/projected/sources") {
        match PROJECTED.into_iter().find(|(source, _)| has(given, source)) {
            Some((_, kind)) => return Ok(Some(kind)),
            None if has(given, "downwardAPI") => {}
            None => return Err(UnknownSource::Projected(name())),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_are_named_by_where_they_are() {
        let told = |spec: Value| match first(&json!({"metadata": {"name": "p"}, "spec": spec})) {
            Ok(found) => found.unwrap_or_default().to_owned(),
            Err(error) => error.to_string(),
        };
        let volume = |volume: Value| told(json!({"volumes": [volume]}));
        for source in WITHOUT {
            assert_eq!(volume(json!({"name": "v", source: {}})), "", "{source}");
        }
        assert_eq!(told(json!({"serviceAccountName": "a"})), "serviceaccounts");
        assert_eq!(told(json!({"imagePullSecrets": [{"name": "a"}]})), "secrets");
        assert_eq!(
            told(json!({"containers": [{"envFrom": [{"configMapRef": {"name": "a"}}]}]})),
            "configmaps"
        );
        assert_eq!(told(json!({"resourceClaims": [{"name": "a"}]})), "resourceclaims");
        for (source, kind) in REFERRING {
            assert_eq!(volume(json!({"name": "v", source: {}})), kind, "{source}");
        }
        for (source, kind) in PROJECTED {
            let sources = json!([{"downwardAPI": {}}, {source: {}}]);
            assert_eq!(volume(json!({"name": "v", "projected": {"sources": sources}})), kind, "{source}");
        }
        assert_eq!(volume(json!({"name": "v", "projected": {"sources": [{"downwardAPI": {}}]}})), "");
        assert_eq!(volume(json!({"name": "v"})), "unknown volume type for volume  \"v\"");
        assert_eq!(
            volume(json!({"name": "v", "projected": {"sources": [{}]}})),
            "unknown source for projected volume \"v\""
        );
    }
}
