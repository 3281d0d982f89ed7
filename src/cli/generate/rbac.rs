//! Generates RBAC roles: those of every deployment, and those for the kinds that policies take their params from.

use std::collections::{BTreeMap, BTreeSet};

use admit_apimachinery::yaml;
use admit_policy::{GroupVersionKind, PolicySet};
use serde_json::json;

const TEMPLATE: &str = include_str!("templates/rbac.yaml");
/// The placeholder for the rules for params.
const PARAMS: &str = "#params\n";

/// Returns the template of `rbac.yaml` for these policies.
pub(super) fn template(policies: &PolicySet) -> String {
    TEMPLATE.replace(PARAMS, &rules(policies))
}

/// Returns one rule per API group: to list and watch the param kinds that policies name and that no file has objects of. ConfigMaps
/// are always included, because policies that are stored in the cluster most often use them as params.
fn rules(policies: &PolicySet) -> String {
    let documents = policies.documents();
    let mut by_group: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    by_group.entry(String::new()).or_default().insert("configmaps".to_owned());
    let mutating = policies.mutating_policies().map(|(policy, _)| policy.common());
    let all = policies.policies().map(|(policy, _)| policy).chain(mutating);
    let kinds = all.filter_map(|policy| policy.param_kind.as_ref());
    for kind in kinds.filter(|kind| !documents.holds(kind)) {
        by_group.entry(kind.group.clone()).or_default().insert(resource(policies, kind));
    }
    let rule = |(group, resources)| json!({"apiGroups": [group], "resources": resources, "verbs": ["get", "list", "watch"]});
    yaml::write(&by_group.into_iter().map(rule).collect())
}

/// Returns the plural name of a kind: from its CRD if that is among the files, or else by the English rule that
/// Kubernetes' own kinds follow (`UnsafeGuessKindToResource` of apimachinery).
fn resource(policies: &PolicySet, kind: &GroupVersionKind) -> String {
    let defined = policies
        .documents()
        .crds()
        .iter()
        .map(|crd| crd.definition())
        .find(|definition| definition.group == kind.group && definition.names.kind == kind.kind);
    defined.map_or_else(|| plural(&kind.kind.to_lowercase()), |definition| definition.names.plural.clone())
}

fn plural(singular: &str) -> String {
    match singular.strip_suffix('y') {
        _ if singular.ends_with("endpoints") => singular.to_owned(),
        _ if singular.ends_with('s') => format!("{singular}es"),
        Some(stem) => format!("{stem}ies"),
        None => format!("{singular}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(name: &str, api_version: &str, kind: &str) -> serde_json::Value {
        let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]});
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": name},
            "spec": {
                "paramKind": {"apiVersion": api_version, "kind": kind},
                "matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": "true"}],
            },
        })
    }

    #[test]
    fn kinds_of_params_may_be_watched() {
        let mut builder = PolicySet::builder();
        for (name, api_version, kind) in [
            ("a", "v1", "ConfigMap"),
            ("b", "v1", "Endpoints"),
            ("c", "example.dev/v1", "Policy"),
            ("d", "example.dev/v1beta1", "Policy"),
            ("e", "example.dev/v1", "Limits"),
            ("f", "defined.dev/v1", "Mouse"),
            ("g", "held.dev/v1", "Thing"),
        ] {
            builder.add(&policy(name, api_version, kind)).unwrap();
        }
        builder
            .add(&json!({"apiVersion": "held.dev/v1", "kind": "Thing", "metadata": {"name": "t"}}))
            .unwrap();
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "mice.defined.dev"},
            "spec": {
                "group": "defined.dev", "scope": "Cluster", "names": {"kind": "Mouse", "plural": "mice"},
                "versions": [{"name": "v1", "served": true, "storage": true,
                              "schema": {"openAPIV3Schema": {"type": "object"}}}],
            },
        });
        builder.add(&definition).unwrap();
        let verbs = "  verbs:\n  - get\n  - list\n  - watch\n";
        let expected = format!(
            "- apiGroups:\n  - \"\"\n  resources:\n  - configmaps\n  - endpoints\n{verbs}\
             - apiGroups:\n  - defined.dev\n  resources:\n  - mice\n{verbs}\
             - apiGroups:\n  - example.dev\n  resources:\n  - limitses\n  - policies\n{verbs}"
        );
        assert_eq!(rules(&builder.finish()), expected);
        assert!(TEMPLATE.contains(PARAMS));
    }
}
