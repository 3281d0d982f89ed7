//! One webhook of a configuration, read once per request that it may concern.

use std::time::Duration;

use admit_policy::host::Host;
use admit_policy::matching::{
    LabelSelector, MatchError, MatchPolicy, MatchResources, Matched, Requirement, Rule, ScopeRule,
    SelectorOperator,
};
use admit_policy::request::{Operation, Request};
use admit_policy::vap::{FailurePolicy, MatchConditions};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SideEffects {
    /// None at all, or none in a dry run.
    None,
    Some,
}

/// Where a webhook listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Address {
    Url(String),
    Service { namespace: String, name: String, port: u16, path: String },
}

#[derive(Debug)]
pub(super) struct Hook {
    pub(super) name: String,
    pub(super) address: Address,
    /// PEM; empty when the configuration names no authority.
    pub(super) ca_bundle: Vec<u8>,
    pub(super) timeout: Duration,
    pub(super) failure_policy: FailurePolicy,
    pub(super) side_effects: SideEffects,
    /// None when the stored conditions do not compile by today's rules.
    pub(super) conditions: Option<MatchConditions>,
    /// Whether the webhook wants to see what webhooks after it changed.
    pub(super) reinvoked: bool,
    pub(super) speaks_v1: bool,
    matching: MatchResources,
}

impl Hook {
    /// Reads an element of `webhooks`, defaults filled in.
    pub(super) fn read(hook: &Value) -> Self {
        let seconds = hook["timeoutSeconds"].as_u64().unwrap_or(10);
        let bundle: String = text(&hook["clientConfig"], "caBundle").split_whitespace().collect();
        let failure_policy = failure_policy(hook);
        Self {
            name: text(hook, "name").to_owned(),
            address: address(&hook["clientConfig"]),
            ca_bundle: STANDARD.decode(bundle).unwrap_or_default(),
            timeout: Duration::from_secs(seconds),
            failure_policy,
            side_effects: match text(hook, "sideEffects") {
                "None" | "NoneOnDryRun" => SideEffects::None,
                _ => SideEffects::Some,
            },
            conditions: MatchConditions::compile(hook, "", failure_policy).ok(),
            reinvoked: text(hook, "reinvocationPolicy") == "IfNeeded",
            speaks_v1: strings(&hook["admissionReviewVersions"]).iter().any(|version| version == "v1"),
            matching: MatchResources {
                rules: hook["rules"].as_array().into_iter().flatten().map(rule).collect(),
                excludes: Vec::new(),
                match_policy: match text(hook, "matchPolicy") {
                    "Exact" => MatchPolicy::Exact,
                    _ => MatchPolicy::Equivalent,
                },
                namespace_selector: selector(&hook["namespaceSelector"]),
                object_selector: selector(&hook["objectSelector"]),
            },
        }
    }

    /// Whether the webhook is asked about `request`, and in which version. One without rules is never asked.
    pub(super) fn matches(&self, request: &Request, host: &dyn Host) -> Result<Option<Matched>, MatchError> {
        if self.matching.rules.is_empty() { Ok(None) } else { self.matching.matches(request, host) }
    }

    /// Whether the webhook's conditions let it be asked about what it matched.
    pub(super) fn conditions_hold(
        &self,
        request: &Request,
        matched: &Matched,
        host: &dyn Host,
    ) -> Result<bool, String> {
        match &self.conditions {
            Some(conditions) => conditions.hold(request, matched, host),
            None => Err("the match conditions do not compile".to_owned()),
        }
    }

    /// The URL as error messages name it.
    pub(super) fn url(&self) -> String {
        let seconds = self.timeout.as_secs();
        match &self.address {
            Address::Url(url) if url.contains('?') => format!("{url}&timeout={seconds}s"),
            Address::Url(url) => format!("{url}?timeout={seconds}s"),
            Address::Service { namespace, name, port, path } => {
                format!("https://{name}.{namespace}.svc:{port}{path}?timeout={seconds}s")
            }
        }
    }
}

/// What a webhook that cannot be asked means for the write.
pub(super) fn failure_policy(hook: &Value) -> FailurePolicy {
    match text(hook, "failurePolicy") {
        "Ignore" => FailurePolicy::Ignore,
        _ => FailurePolicy::Fail,
    }
}

fn address(config: &Value) -> Address {
    if let Some(url) = config["url"].as_str() {
        return Address::Url(url.to_owned());
    }
    let service = &config["service"];
    let path = text(service, "path");
    Address::Service {
        namespace: text(service, "namespace").to_owned(),
        name: text(service, "name").to_owned(),
        port: service["port"].as_u64().and_then(|port| u16::try_from(port).ok()).unwrap_or(443),
        path: if path.starts_with('/') { path.to_owned() } else { format!("/{path}") },
    }
}

fn rule(rule: &Value) -> Rule {
    let operations = strings(&rule["operations"]);
    Rule {
        operations: (!operations.iter().any(|name| name == "*"))
            .then(|| operations.iter().filter_map(|name| name.parse::<Operation>().ok()).collect()),
        groups: strings(&rule["apiGroups"]),
        versions: strings(&rule["apiVersions"]),
        resources: strings(&rule["resources"]),
        scope: match text(rule, "scope") {
            "Namespaced" => ScopeRule::Namespaced,
            "Cluster" => ScopeRule::Cluster,
            _ => ScopeRule::All,
        },
        resource_names: Vec::new(),
    }
}

fn selector(selector: &Value) -> LabelSelector {
    let labels = selector["matchLabels"].as_object().into_iter().flatten().map(|(key, value)| Requirement {
        key: key.clone(),
        operator: SelectorOperator::In,
        values: vec![value.as_str().unwrap_or_default().to_owned()],
    });
    let expressions =
        selector["matchExpressions"].as_array().into_iter().flatten().filter_map(|expression| {
            let operator = match text(expression, "operator") {
                "In" => SelectorOperator::In,
                "NotIn" => SelectorOperator::NotIn,
                "Exists" => SelectorOperator::Exists,
                "DoesNotExist" => SelectorOperator::DoesNotExist,
                _ => return None,
            };
            Some(Requirement {
                key: text(expression, "key").to_owned(),
                operator,
                values: strings(&expression["values"]),
            })
        });
    LabelSelector::new(labels.chain(expressions).collect())
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap_or_default()
}

fn strings(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}
