//! The webhook configuration that sends an API server's requests to us: derived from what the policies match, so that
//! nothing else waits for us and nothing they match passes by.

use std::collections::BTreeMap;

use admit_policy::PolicySet;
use admit_policy::matching::{Rule, ScopeRule};
use admit_policy::request::Operation;
use serde_json::{Value, json};

/// The name of the configuration and, as its first label, of the webhook in it.
pub(super) const NAME: &str = "admit";
/// What denials name: `admission webhook "policies.admit.local" denied the request: …`.
const WEBHOOK: &str = "policies.admit.local";
/// Seconds an API server waits for an answer.
const TIMEOUT: u32 = 10;

/// A ValidatingWebhookConfiguration for all that `policies` match, calling `client` (a `clientConfig`).
pub(super) fn configuration(policies: &PolicySet, client: &Value) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": NAME},
        "webhooks": [{
            "name": WEBHOOK,
            "clientConfig": client,
            "rules": rules(policies),
            "failurePolicy": "Fail",
            "matchPolicy": "Equivalent",
            "sideEffects": "None",
            "timeoutSeconds": TIMEOUT,
            "admissionReviewVersions": ["v1"],
        }],
    })
}

/// Group, version, scope and operations of a rule: what rules must share to become one.
type Key = (Vec<String>, Vec<String>, &'static str, Vec<&'static str>);

/// The rules of all policies; those that differ in their resources alone are one.
fn rules(policies: &PolicySet) -> Vec<Value> {
    let mut merged: BTreeMap<Key, Vec<&str>> = BTreeMap::new();
    for (policy, _) in policies.policies() {
        for rule in &policy.constraints.rules {
            let resources = merged.entry(key(rule)).or_default();
            resources.extend(rule.resources.iter().map(String::as_str));
        }
    }
    merged
        .into_iter()
        .map(|((groups, versions, scope, operations), mut resources)| {
            resources.sort_unstable();
            resources.dedup();
            json!({
                "apiGroups": groups, "apiVersions": versions, "operations": operations,
                "resources": resources, "scope": scope,
            })
        })
        .collect()
}

fn key(rule: &Rule) -> Key {
    let scope = match rule.scope {
        ScopeRule::All => "*",
        ScopeRule::Namespaced => "Namespaced",
        ScopeRule::Cluster => "Cluster",
    };
    let operations = match &rule.operations {
        None => vec!["*"],
        Some(operations) => {
            let mut names: Vec<_> =
                operations.iter().map(|operation| Operation::as_str(*operation)).collect();
            names.sort_unstable();
            names.dedup();
            names
        }
    };
    (rule.groups.clone(), rule.versions.clone(), scope, operations)
}
