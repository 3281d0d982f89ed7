//! Finds the fields of a Pod that have no effect here.

use k8s_openapi::api::core::v1::Pod;

use super::super::cgroups::Groups;
use super::{hooks, limits, network_probe};

/// Returns the fields of a Pod that have no effect here.
pub(super) fn ignored(pod: &Pod, groups: &Groups) -> Vec<String> {
    let Some(spec) = &pod.spec else { return Vec::new() };
    let mut found = Vec::new();
    let inits = spec.init_containers.iter().flatten();
    for container in inits.chain(&spec.containers) {
        let policy = container.restart_policy.is_some()
            && spec.containers.iter().any(|one| one.name == container.name);
        let mut fields: Vec<String> = [
            ("securityContext", container.security_context.is_some()),
            ("volumeDevices", container.volume_devices.is_some()),
            ("restartPolicy", policy),
            ("tty", container.tty == Some(true)),
            ("stdin", container.stdin == Some(true)),
        ]
        .into_iter()
        .filter(|(_, asked)| *asked)
        .map(|(field, _)| field.to_owned())
        .collect();
        fields.extend(hooks::unknown(container));
        fields.extend(limits::unheld(container, groups));
        for (name, probe) in [
            ("livenessProbe", &container.liveness_probe),
            ("readinessProbe", &container.readiness_probe),
            ("startupProbe", &container.startup_probe),
        ] {
            let unknown = probe.as_ref().and_then(network_probe::unknown);
            fields.extend(unknown.map(|field| format!("{name}.{field}")));
        }
        found.extend(fields.into_iter().map(|field| format!("containers[{}].{field}", container.name)));
    }
    let context = spec.security_context.as_ref().is_some_and(|context| *context != Default::default());
    let node_affinity = spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    let affinity = node_affinity
        .is_some_and(|affinity| affinity.required_during_scheduling_ignored_during_execution.is_some());
    for (field, asked) in [
        ("securityContext", context),
        ("affinity.nodeAffinity", affinity),
        ("shareProcessNamespace", spec.share_process_namespace == Some(true)),
        ("runtimeClassName", spec.runtime_class_name.is_some()),
        ("hostAliases", spec.host_aliases.is_some()),
        ("readinessGates", spec.readiness_gates.is_some()),
        ("resourceClaims", spec.resource_claims.is_some()),
        ("resources", spec.resources.is_some()),
    ] {
        if asked {
            found.push(field.to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_not_acted_upon_is_named() {
        let pod: Pod = serde_json::from_value(json!({"metadata": {}, "spec": {
            "securityContext": {}, "containers": [{"name": "c", "livenessProbe": {"exec": {}},
                "readinessProbe": {"grpc": {"port": 1}}, "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}],
        }}))
        .unwrap();
        let expected = ["resources.limits.cpu", "resources.limits.memory", "readinessProbe.grpc"];
        assert_eq!(ignored(&pod, &Groups::none()), expected.map(|field| format!("containers[c].{field}")));
    }
}
