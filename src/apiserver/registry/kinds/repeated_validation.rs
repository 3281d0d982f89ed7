//! How often Kubernetes validates the metadata on an update: each validation lists its errors again, which answers
//! show.
//!
//! Every update is validated as an object and as a change. Most kinds validate the change again by themselves, and
//! many the object, too (pkg/registry and pkg/apis of each kind: the strategy's `ValidateUpdate`, and what that
//! calls).

use crate::resources::ResourceInfo;

/// A group, and the plural names of those of its kinds that are meant.
type Kinds = (&'static str, &'static [&'static str]);

const ADMISSION: Kinds = (
    "admissionregistration.k8s.io",
    &[
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
        "mutatingwebhookconfigurations",
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "validatingwebhookconfigurations",
    ],
);

/// Kinds whose own validation leaves out the metadata of a change.
const CHANGE_ONCE: [Kinds; 6] = [
    ("", &["limitranges", "persistentvolumes"]),
    ADMISSION,
    ("discovery.k8s.io", &["endpointslices"]),
    ("flowcontrol.apiserver.k8s.io", &["flowschemas", "prioritylevelconfigurations"]),
    ("policy", &["poddisruptionbudgets"]),
    ("storage.k8s.io", &["csinodes", "volumeattachments"]),
];

/// Kinds whose own validation covers all metadata of the changed object once more.
const OBJECT_AGAIN: [Kinds; 11] = [
    (
        "",
        &[
            "configmaps",
            "endpoints",
            "limitranges",
            "namespaces",
            "nodes",
            "persistentvolumeclaims",
            "persistentvolumes",
            "pods",
            "secrets",
            "serviceaccounts",
        ],
    ),
    ("apps", &["controllerrevisions"]),
    ("batch", &["jobs"]),
    ("discovery.k8s.io", &["endpointslices"]),
    ("flowcontrol.apiserver.k8s.io", &["flowschemas", "prioritylevelconfigurations"]),
    ("networking.k8s.io", &["ingressclasses", "ingresses", "ipaddresses"]),
    ("node.k8s.io", &["runtimeclasses"]),
    ("rbac.authorization.k8s.io", &["clusterrolebindings", "clusterroles", "rolebindings", "roles"]),
    ("resource.k8s.io", &["deviceclasses", "resourceclaims", "resourceclaimtemplates"]),
    (
        "storage.k8s.io",
        &[
            "csinodes",
            "csistoragecapacities",
            "storageclasses",
            "volumeattachments",
            "volumeattributesclasses",
        ],
    ),
    ADMISSION,
];

/// Whether the own validation of the kind covers the metadata of a change, which the common validation did before.
pub(super) fn of_change(info: &ResourceInfo) -> bool {
    !has(&CHANGE_ONCE, info)
}

/// How often the own validation of the kind covers all metadata of a changed object, beside the common validation.
pub(super) fn of_object(info: &ResourceInfo) -> usize {
    match info.plural.as_str() {
        // Once for a new volume, once for a change, which begins as if the volume were new.
        "persistentvolumes" if info.builtin => 2,
        _ => usize::from(has(&OBJECT_AGAIN, info)),
    }
}

fn has(table: &[Kinds], info: &ResourceInfo) -> bool {
    info.builtin
        && table
            .iter()
            .any(|(group, plurals)| *group == info.group && plurals.contains(&info.plural.as_str()))
}
