//! Lists the objects that a pod refers to by name (`VisitPodSecretNames`, `VisitPodConfigmapNames`), and the secrets of volumes.

use admit_apimachinery::pointer::{items, text};
use serde_json::Value;

use crate::object;

/// The annotation of mirror pods: copies in the API of pods that a kubelet runs by itself.
pub(crate) const MIRROR: &str = "kubernetes.io/config.mirror";

pub(crate) fn is_mirror(pod: &Value) -> bool {
    object::meta_map(pod, "annotations").any(|(key, _)| key == MIRROR)
}

/// Paths of all lists of containers of a pod.
const CONTAINERS: [&str; 3] = ["/spec/initContainers", "/spec/containers", "/spec/ephemeralContainers"];

/// Paths of secret names in volume sources.
const SECRET_SOURCES: [&str; 10] = [
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
];

/// Returns the names of the secrets that the pod uses.
pub(crate) fn secrets(pod: &Value) -> impl Iterator<Item = &str> {
    let pulled = items(pod, "/spec/imagePullSecrets").iter().map(|secret| text(secret, "/name"));
    let volumes = items(pod, "/spec/volumes").iter().flat_map(|volume| {
        let own = SECRET_SOURCES.into_iter().map(|source| text(volume, source));
        own.chain(projected(volume, "/secret/name"))
    });
    let read = read_by_containers(pod, ["/secretRef/name", "/valueFrom/secretKeyRef/name"]);
    pulled.chain(read).chain(volumes).filter(|name| !name.is_empty())
}

/// Returns the names of the config maps that the pod uses.
pub(crate) fn config_maps(pod: &Value) -> impl Iterator<Item = &str> {
    let volumes = items(pod, "/spec/volumes").iter().flat_map(|volume| {
        std::iter::once(text(volume, "/configMap/name")).chain(projected(volume, "/configMap/name"))
    });
    let read = read_by_containers(pod, ["/configMapRef/name", "/valueFrom/configMapKeyRef/name"]);
    read.chain(volumes).filter(|name| !name.is_empty())
}

/// Returns the names of the PersistentVolumeClaims that the pod uses, including those created for ephemeral volumes.
pub(crate) fn claims(pod: &Value) -> impl Iterator<Item = String> {
    items(pod, "/spec/volumes").iter().filter_map(|volume| claim(pod, volume))
}

/// Returns the name of the claim of a volume; None if the volume has no claim.
pub(crate) fn claim(pod: &Value, volume: &Value) -> Option<String> {
    let own = text(volume, "/persistentVolumeClaim/claimName");
    if !own.is_empty() {
        return Some(own.to_owned());
    }
    let made = volume.get("ephemeral").is_some_and(Value::is_object);
    made.then(|| format!("{}-{}", object::name(pod), text(volume, "/name")))
}

/// Returns the names of the ResourceClaims that the pod uses. Those from templates are named in the status once created.
pub(crate) fn resource_claims(pod: &Value) -> impl Iterator<Item = &str> {
    let made = |name: &str| {
        let statuses = items(pod, "/status/resourceClaimStatuses");
        statuses.iter().find(|status| text(status, "/name") == name)
    };
    let listed =
        items(pod, "/spec/resourceClaims").iter().map(move |claim| match text(claim, "/resourceClaimName") {
            "" => made(text(claim, "/name")).map_or("", |status| text(status, "/resourceClaimName")),
            own => own,
        });
    let extended = text(pod, "/status/extendedResourceClaimStatus/resourceClaimName");
    listed.chain(std::iter::once(extended)).filter(|name| !name.is_empty())
}

/// Returns namespace and name of each secret with which kubelets access a persistent volume.
pub(crate) fn secrets_of_volume(volume: &Value) -> impl Iterator<Item = (&str, &str)> {
    let claimed_in = text(volume, "/spec/claimRef/namespace");
    let reference = move |pointer: &str, else_in: &'static str| {
        let own = text(volume, &format!("/spec/{pointer}/namespace"));
        let namespace = if own.is_empty() && else_in == CLAIM { claimed_in } else { own };
        (namespace, text(volume, &format!("/spec/{pointer}/name")))
    };
    let azure = {
        let own = text(volume, "/spec/azureFile/secretNamespace");
        let namespace = if own.is_empty() { claimed_in } else { own };
        (namespace, text(volume, "/spec/azureFile/secretName"))
    };
    let others = VOLUME_SECRETS.into_iter().map(move |(pointer, else_in)| reference(pointer, else_in));
    std::iter::once(azure).chain(others).filter(|(_, name)| !name.is_empty())
}

/// Marks secrets whose default namespace is that of the claim.
const CLAIM: &str = "claim";

/// References to secrets in persistent volumes that kubelets may read; those of CSI controllers are not included.
const VOLUME_SECRETS: [(&str, &str); 10] = [
    ("cephfs/secretRef", CLAIM),
    ("cinder/secretRef", ""),
    ("flexVolume/secretRef", CLAIM),
    ("rbd/secretRef", CLAIM),
    ("scaleIO/secretRef", CLAIM),
    ("iscsi/secretRef", CLAIM),
    ("storageos/secretRef", ""),
    ("csi/nodePublishSecretRef", ""),
    ("csi/nodeStageSecretRef", ""),
    ("csi/nodeExpandSecretRef", ""),
];

fn read_by_containers<'p>(pod: &'p Value, [all, one]: [&'static str; 2]) -> impl Iterator<Item = &'p str> {
    let containers = CONTAINERS.into_iter().flat_map(|list| items(pod, list));
    containers.flat_map(move |container| {
        let from = items(container, "/envFrom").iter().map(move |source| text(source, all));
        from.chain(items(container, "/env").iter().map(move |variable| text(variable, one)))
    })
}

fn projected<'v>(volume: &'v Value, source: &'static str) -> impl Iterator<Item = &'v str> {
    items(volume, "/projected/sources").iter().map(move |given| text(given, source))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_are_found_wherever_a_pod_uses_them() {
        let pod = json!({"metadata": {"name": "p"}, "spec": {
            "imagePullSecrets": [{"name": "s1"}],
            "initContainers": [{"env": [{"valueFrom": {"secretKeyRef": {"name": "s2"}}}]}],
            "ephemeralContainers": [{"envFrom": [{"secretRef": {"name": "s3"}}, {"configMapRef": {"name": "c1"}}]}],
            "volumes": [{"secret": {"secretName": "s4"}}, {"csi": {"nodePublishSecretRef": {"name": "s5"}}},
                {"projected": {"sources": [{"secret": {"name": "s6"}}, {"configMap": {"name": "c2"}}]}},
                {"configMap": {"name": "c3"}}, {"persistentVolumeClaim": {"claimName": "v"}},
                {"name": "e", "ephemeral": {}}, {"name": "d", "emptyDir": {}}],
            "resourceClaims": [{"name": "x", "resourceClaimName": "own"}, {"name": "y", "resourceClaimTemplateName": "t"},
                {"name": "z", "resourceClaimTemplateName": "t"}]},
            "status": {"resourceClaimStatuses": [{"name": "y", "resourceClaimName": "made"}, {"name": "z"}],
                "extendedResourceClaimStatus": {"resourceClaimName": "more"}}});
        let of = |names: Vec<&str>| names.join(" ");
        assert_eq!(of(secrets(&pod).collect()), "s1 s2 s3 s4 s5 s6");
        assert_eq!(of(config_maps(&pod).collect()), "c1 c2 c3");
        assert_eq!(claims(&pod).collect::<Vec<_>>(), ["v", "p-e"]);
        assert_eq!(of(resource_claims(&pod).collect()), "own made more");
    }

    #[test]
    fn secrets_of_volumes_are_where_the_claim_is_or_where_they_say() {
        let volume = |source: &str, given: Value| json!({"spec": {"claimRef": {"namespace": "n", "name": "c"}, source: given}});
        let secret = |namespace: Value| json!({"secretRef": {"name": "s", "namespace": namespace}});
        for (source, given, expected) in [
            ("azureFile", json!({"secretName": "s"}), &[("n", "s")][..]),
            ("azureFile", json!({"secretName": "s", "secretNamespace": "o"}), &[("o", "s")]),
            ("cephfs", secret(json!(null)), &[("n", "s")]),
            ("rbd", secret(json!("o")), &[("o", "s")]),
            ("storageos", secret(json!(null)), &[("", "s")]),
            (
                "csi",
                json!({"nodePublishSecretRef": {"name": "p", "namespace": "o"}, "nodeStageSecretRef": {"name": "q", "namespace": "o"},
                    "controllerPublishSecretRef": {"name": "no", "namespace": "o"}}),
                &[("o", "p"), ("o", "q")],
            ),
            ("hostPath", json!({"path": "/x"}), &[]),
        ] {
            let volume = volume(source, given);
            assert_eq!(secrets_of_volume(&volume).collect::<Vec<_>>(), expected, "{volume}");
        }
    }
}
