//! Checks which labels a kubelet may set on its node: those that describe the machine, and no others in the domains of
//! Kubernetes.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::object;

/// Labels in the domains of Kubernetes that kubelets may set.
const OWN: [&str; 11] = [
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/instance-type",
    "beta.kubernetes.io/os",
    "failure-domain.beta.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "kubernetes.io/arch",
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
];
/// Domains in which kubelets may set any label.
const OWN_DOMAINS: [&str; 2] = ["kubelet.kubernetes.io", "node.kubernetes.io"];
const KUBERNETES: [&str; 2] = ["kubernetes.io", "k8s.io"];
/// The domain whose labels only administrators may set.
const RESTRICTED: &str = "node-restriction.kubernetes.io";

/// Returns the changed labels that a kubelet may not change, joined with commas; None if all are allowed.
pub(super) fn forbidden(new: &Value, old: &Value) -> Option<String> {
    let labels = |object| -> BTreeMap<&str, &str> { object::meta_map(object, "labels").collect() };
    let (new, old) = (labels(new), labels(old));
    let keys: BTreeSet<&str> = new.keys().chain(old.keys()).copied().collect();
    let changed = keys.into_iter().filter(|key| new.get(key) != old.get(key));
    let forbidden: Vec<&str> = changed.filter(|key| is_forbidden(key)).collect();
    (!forbidden.is_empty()).then(|| forbidden.join(", "))
}

fn is_forbidden(label: &str) -> bool {
    let domain = label.split_once('/').map_or("", |(domain, _)| domain);
    let is_of = |above: &str| {
        domain.strip_suffix(above).is_some_and(|below| below.is_empty() || below.ends_with('.'))
    };
    let is_own = OWN.contains(&label) || OWN_DOMAINS.into_iter().any(is_of);
    is_of(RESTRICTED) || KUBERNETES.into_iter().any(is_of) && !is_own
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubelets_say_what_a_machine_is_and_no_more() {
        for (label, forbidden) in [
            ("kubernetes.io/os", false),
            ("topology.kubernetes.io/zone", false),
            ("x.node.kubernetes.io/y", false),
            ("kubelet.kubernetes.io/y", false),
            ("node.kubernetes.io/windows-build", false),
            ("example.com/y", false),
            ("y", false),
            ("akubernetes.io/y", false),
            ("kubernetes.io/y", true),
            ("x.k8s.io/y", true),
            ("node-role.kubernetes.io/control-plane", true),
            ("node-restriction.kubernetes.io/y", true),
            ("x.node-restriction.kubernetes.io/y", true),
        ] {
            assert_eq!(is_forbidden(label), forbidden, "{label}");
        }
    }
}
