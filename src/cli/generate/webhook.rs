//! Generates the configuration of this program's webhook. It is derived from the rules of the policies, so that the API server
//! sends exactly the requests that they match.
//!
//! Policies that may deny have a webhook of their own, separate from those that can only warn or audit: when the webhook
//! cannot be reached, requests to the former are denied, and those to the latter are not delayed. A policy whose bindings
//! only warn may deny as well, if it has params that may be missing or reads a Namespace.
//!
//! Whatever the policies match, requests that a cluster needs to recover are excluded: those in the webhook's own namespace
//! (a replica that is down must be replaceable), Leases, token and access reviews, and the admission configuration
//! itself.

use std::collections::BTreeMap;

use admit_policy::matching::{Rule, ScopeRule};
use admit_policy::{Operation, Policy, PolicySet};
use serde_json::{Map, Value, json};

/// The name of the configuration and, as its first label, of the webhooks in it.
pub(in crate::cli) const NAME: &str = "admit";
/// The webhook name in denials: `admission webhook "policies.admit.local" denied the request: …`.
const ENFORCING: &str = "policies.admit.local";
/// The webhook of the policies that cannot deny.
const AUDITING: &str = "audit.policies.admit.local";
/// The webhook of the policies that change objects.
const MUTATING: &str = "mutate.policies.admit.local";
/// Seconds an API server waits for an answer.
const TIMEOUT: u32 = 10;

/// API groups whose requests are never sent: (group, its resources or none for all, the name of the match condition).
const EXCLUDED: &[(&str, &[&str], &str)] = &[
    ("coordination.k8s.io", &["leases", "leasecandidates"], "not-leases"),
    ("authentication.k8s.io", &[], "not-authentication"),
    ("authorization.k8s.io", &[], "not-authorization"),
    ("admissionregistration.k8s.io", &[], "not-admission-configuration"),
];

/// How the API server reaches the webhook: by Service or by URL.
#[derive(Clone, Debug)]
pub(in crate::cli) enum Endpoint {
    Service {
        name: String,
        namespace: String,
    },
    /// `https://host:port`, with the authority to trust.
    Url {
        base: String,
        ca_bundle: String,
    },
}

/// The webhook that a configuration is generated for.
#[derive(Debug)]
pub(in crate::cli) struct Callee<'c> {
    pub(in crate::cli) endpoint: Endpoint,
    /// Requests about objects in this namespace are not sent.
    pub(in crate::cli) own_namespace: Option<&'c str>,
    /// The failure policy of webhooks for policies that may deny.
    pub(in crate::cli) failure_policy: &'c str,
    /// Whether objects of the loaded CustomResourceDefinitions are sent even where no policy matches them, for API servers
    /// whose own definitions lack the rules.
    pub(in crate::cli) definitions: bool,
}

/// Creates a ValidatingWebhookConfiguration that sends to `callee` all that `policies` match.
pub(in crate::cli) fn configuration(policies: &PolicySet, callee: &Callee<'_>) -> Value {
    let webhook = |name: &str, path: &str, failure_policy: &str, enforcing: bool| {
        let rules = rules(policies, enforcing, callee.definitions && enforcing);
        (!rules.is_empty()).then(|| {
            let mut webhook = Map::new();
            let mut set = |key: &str, value: Value| webhook.insert(key.to_owned(), value);
            set("name", name.into());
            set("clientConfig", callee.endpoint.client_config(path));
            if let Some(namespace) = callee.own_namespace {
                set("namespaceSelector", outside_of(namespace));
            }
            let conditions = conditions(&rules);
            if !conditions.is_empty() {
                set("matchConditions", conditions.into());
            }
            set("rules", rules.into_iter().map(MergedRule::document).collect());
            set("failurePolicy", failure_policy.into());
            set("matchPolicy", "Equivalent".into());
            set("sideEffects", "None".into());
            set("timeoutSeconds", TIMEOUT.into());
            set("admissionReviewVersions", json!(["v1"]));
            Value::Object(webhook)
        })
    };
    let webhooks: Vec<Value> = [
        webhook(ENFORCING, "/enforce", callee.failure_policy, true),
        webhook(AUDITING, "/audit", "Ignore", false),
    ]
    .into_iter()
    .flatten()
    .collect();
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": NAME},
        "webhooks": webhooks,
    })
}

/// Creates a MutatingWebhookConfiguration that sends to `callee` what the mutating policies match; none if there are
/// no such policies.
pub(in crate::cli) fn mutating_configuration(policies: &PolicySet, callee: &Callee<'_>) -> Option<Value> {
    let rules = merged(
        policies
            .mutating_policies()
            .filter(|(_, bindings)| !bindings.is_empty())
            .map(|(policy, _)| policy.common()),
    );
    if rules.is_empty() {
        return None;
    }
    let rules = sorted(rules);
    let conditions = self::conditions(&rules);
    let mut webhook = json!({
        "name": MUTATING,
        "clientConfig": callee.endpoint.client_config("/mutate"),
        "rules": rules.into_iter().map(MergedRule::document).collect::<Vec<_>>(),
        "failurePolicy": callee.failure_policy,
        "matchPolicy": "Equivalent",
        "sideEffects": "None",
        // A later webhook may change what the policies look at; each policy has a reinvocation policy of its own.
        "reinvocationPolicy": "IfNeeded",
        "timeoutSeconds": TIMEOUT,
        "admissionReviewVersions": ["v1"],
    });
    if let Some(namespace) = callee.own_namespace {
        webhook["namespaceSelector"] = outside_of(namespace);
    }
    if !conditions.is_empty() {
        webhook["matchConditions"] = conditions.into();
    }
    Some(json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": NAME},
        "webhooks": [webhook],
    }))
}

impl Endpoint {
    /// Returns the client configuration, which has the same form in CRDs.
    pub(in crate::cli) fn client_config(&self, path: &str) -> Value {
        match self {
            Self::Service { name, namespace } => {
                json!({"service": {"name": name, "namespace": namespace, "path": path, "port": 443}})
            }
            Self::Url { base, ca_bundle } => json!({"url": format!("{base}{path}"), "caBundle": ca_bundle}),
        }
    }
}

fn outside_of(namespace: &str) -> Value {
    json!({"matchExpressions": [
        {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": [namespace]},
    ]})
}

/// Group, version, scope and operations of a rule: rules that have these in common are merged.
type Key = (Vec<String>, Vec<String>, &'static str, Vec<&'static str>);

/// Rules of several policies that differ only in their resources.
struct MergedRule {
    key: Key,
    resources: Vec<String>,
}

/// Returns the rules of the policies that may deny, or of those that cannot. A policy without a binding has no effect and no
/// rules. With `definitions`, also returns rules for custom resources.
fn rules(policies: &PolicySet, enforcing: bool, definitions: bool) -> Vec<MergedRule> {
    let concerned = policies
        .policies()
        .filter(|(policy, bindings)| !bindings.is_empty() && policy.may_deny(bindings) == enforcing);
    let mut merged = merged(concerned.map(|(policy, _)| policy));
    for definition in policies.documents().crds().iter().filter(|_| definitions) {
        let definition = definition.definition();
        let served = definition.versions.iter().filter(|version| version.served);
        let versions: Vec<_> = served.map(|version| version.name.clone()).collect();
        let plural = &definition.names.plural;
        let key = (vec![definition.group.clone()], versions, "*", vec!["CREATE", "UPDATE"]);
        merged.entry(key).or_default().extend([plural.clone(), format!("{plural}/status")]);
    }
    sorted(merged)
}

/// Groups the resources of all rules of the policies by the rest of the rule.
fn merged<'p>(policies: impl Iterator<Item = &'p Policy>) -> BTreeMap<Key, Vec<String>> {
    let mut merged: BTreeMap<Key, Vec<String>> = BTreeMap::new();
    for policy in policies {
        for rule in &policy.constraints.rules {
            let key = key(rule);
            let resources: Vec<_> =
                rule.resources.iter().filter(|resource| !is_excluded(&key.0, resource)).cloned().collect();
            if !resources.is_empty() {
                merged.entry(key).or_default().extend(resources);
            }
        }
    }
    merged
}

fn sorted(merged: BTreeMap<Key, Vec<String>>) -> Vec<MergedRule> {
    let sorted = merged.into_iter().map(|(key, mut resources)| {
        resources.sort_unstable();
        resources.dedup();
        MergedRule { key, resources }
    });
    sorted.collect()
}

impl MergedRule {
    fn document(self) -> Value {
        let (groups, versions, scope, operations) = self.key;
        json!({
            "apiGroups": groups, "apiVersions": versions, "operations": operations,
            "resources": self.resources, "scope": scope,
        })
    }

    /// Whether a request for `resource` of `group` may match the rule.
    fn reaches(&self, group: &str, excluded: &[&str]) -> bool {
        let of_resource = |pattern: &String| {
            let name = pattern.split('/').next().unwrap_or(pattern);
            name == "*" || excluded.is_empty() || excluded.contains(&name)
        };
        self.key.0.iter().any(|known| known == "*" || known == group)
            && self.resources.iter().any(of_resource)
    }
}

/// Whether every request for `resource` of `groups` is excluded, so that no rule has to name it.
fn is_excluded(groups: &[String], resource: &str) -> bool {
    let name = resource.split('/').next().unwrap_or(resource);
    groups.iter().all(|group| {
        EXCLUDED.iter().any(|(excluded, resources, _)| {
            excluded == group && (resources.is_empty() || resources.contains(&name))
        })
    })
}

/// Returns match conditions that exclude requests which wildcards of the rules match; rules cannot exclude.
fn conditions(rules: &[MergedRule]) -> Vec<Value> {
    let reached = EXCLUDED
        .iter()
        .filter(|(group, resources, _)| rules.iter().any(|rule| rule.reaches(group, resources)));
    let condition = |(group, resources, name): &(&str, &[&str], &str)| {
        let group = format!("request.resource.group != '{group}'");
        let expression = if resources.is_empty() {
            group
        } else {
            let names: Vec<_> = resources.iter().map(|resource| format!("'{resource}'")).collect();
            format!("{group} || !(request.resource.resource in [{}])", names.join(", "))
        };
        json!({"name": name, "expression": expression})
    };
    reached.map(condition).collect()
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

#[cfg(test)]
mod tests;
