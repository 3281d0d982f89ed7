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

/// Kinds that do not look at the metadata of a change by themselves.
const NO_CHANGES: [Kinds; 6] = [
    ("", &["limitranges", "persistentvolumes"]),
    ADMISSION,
    ("discovery.k8s.io", &["endpointslices"]),
    ("flowcontrol.apiserver.k8s.io", &["flowschemas", "prioritylevelconfigurations"]),
    ("policy", &["poddisruptionbudgets"]),
    ("storage.k8s.io", &["csinodes", "volumeattachments"]),
];

/// Kinds that look once more at all of the changed object.
const WHOLE: [Kinds; 11] = [
    (
        "",
        &[
            "configmaps",
            "endpoints",
            "limitranges",
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

/// Whether the kind looks at the metadata of a change beside what every kind does.
pub(super) fn at_changes(info: &ResourceInfo) -> bool {
    !has(&NO_CHANGES, info)
}

/// How often the kind looks at all metadata of a changed object beside what every kind does.
pub(super) fn at_whole(info: &ResourceInfo) -> usize {
    match info.plural.as_str() {
        // Once for a new volume, once for a change, which begins as if the volume were new.
        "persistentvolumes" if info.builtin => 2,
        _ => usize::from(has(&WHOLE, info)),
    }
}

fn has(table: &[Kinds], info: &ResourceInfo) -> bool {
    info.builtin
        && table
            .iter()
            .any(|(group, plurals)| *group == info.group && plurals.contains(&info.plural.as_str()))
}
