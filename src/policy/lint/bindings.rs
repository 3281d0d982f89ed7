//! Policies and bindings that miss each other, and resources that nothing serves.

use std::collections::{HashMap, HashSet};

use super::{Compiled, Finding, nothing, warning};
use crate::manifest::Document;
use crate::matching::{MatchResources, Rule, ScopeRule};
use crate::request::Operation;
use crate::vap::{Binding, Policy};

/// How many of the resources that a group does have are named where one is looked for that it does not have.
const NAMED: usize = 10;

pub(super) fn lint(compiled: &Compiled<'_>, documents: &[Document]) -> Vec<Finding> {
    let mut findings = Vec::new();
    // What does not compile is there all the same.
    let texts = |kind: &'static str, pointer: &'static str| {
        documents
            .iter()
            .filter(move |document| text(document, "/kind") == kind)
            .map(move |one| text(one, pointer))
    };
    let bound: HashSet<&str> = texts("ValidatingAdmissionPolicyBinding", "/spec/policyName").collect();
    let there: HashSet<&str> = texts("ValidatingAdmissionPolicy", "/metadata/name").collect();
    let mut by_name: HashMap<&str, &Policy> = HashMap::new();
    for (_, policy) in &compiled.policies {
        by_name.entry(&policy.name).or_insert(policy);
    }
    let served = served(compiled);
    for (document, policy) in &compiled.policies {
        if !bound.contains(&*policy.name) {
            let problem = "no binding names this policy".to_owned();
            let help = "without a ValidatingAdmissionPolicyBinding it is never evaluated";
            findings.push(warning(document, "no-binding", "metadata.name", problem, help));
        }
        findings.extend(unserved(document, policy, &served));
        findings.extend(nothing::left(&policy.constraints, None).into_iter().map(|(field, problem)| {
            let field = format!("spec.matchConstraints.{field}");
            warning(document, "matches-nothing", &field, problem, "the policy is never evaluated")
        }));
    }
    for (document, binding) in &compiled.bindings {
        match by_name.get(&*binding.policy_name) {
            Some(policy) => findings.extend(against(document, binding, policy)),
            None if there.contains(&*binding.policy_name) => {}
            None => {
                let problem = format!("there is no policy `{}`", binding.policy_name);
                findings.push(warning(document, "no-policy", "spec.policyName", problem, ""));
            }
        }
    }
    findings
}

fn text<'d>(document: &'d Document, pointer: &str) -> &'d str {
    document.value.pointer(pointer).and_then(serde_json::Value::as_str).unwrap_or_default()
}

fn against(document: &Document, binding: &Binding, policy: &Policy) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(resources) = &binding.match_resources {
        let own = &resources.rules;
        let meets = |rule: &Rule| policy.constraints.rules.iter().any(|other| intersects(rule, other));
        if !own.is_empty() && !own.iter().any(meets) {
            let problem = format!("has nothing in common with what policy `{}` matches", policy.name);
            let help = "a request has to match both: the policy is never evaluated through this binding";
            findings.push(warning(
                document,
                "binding-matches-nothing",
                "spec.matchResources.resourceRules",
                problem,
                help,
            ));
        }
    }
    if let Some(resources) = binding.match_resources.as_ref().filter(|_| findings.is_empty()) {
        findings.extend(nothing_left(document, resources, policy));
    }
    match (&policy.param_kind, &binding.param_ref) {
        (Some(kind), None) => {
            let problem =
                format!("policy `{}` takes params of kind {}, and this names none", policy.name, kind.kind);
            let help = "`params` is null here; name them in spec.paramRef";
            findings.push(warning(document, "params-not-bound", "spec", problem, help));
        }
        (None, Some(_)) => {
            let problem = format!("policy `{}` takes no params", policy.name);
            let help = "take paramRef out, or give the policy a paramKind";
            findings.push(warning(document, "params-not-bound", "spec.paramRef", problem, help));
        }
        _ => {}
    }
    findings
}

/// What a binding leaves of what its policy matches, unless the policy by itself matches nothing.
fn nothing_left(document: &Document, resources: &MatchResources, policy: &Policy) -> Vec<Finding> {
    let of_policy = nothing::left(&policy.constraints, None);
    let by_itself = |field: &str| of_policy.iter().any(|(known, _)| *known == field);
    // A binding without rules of its own speaks of those of the policy.
    let rules = if resources.rules.is_empty() { &policy.constraints.rules } else { &resources.rules };
    let both = MatchResources { rules: rules.clone(), ..resources.clone() };
    let left = nothing::left(&both, Some(&policy.constraints)).into_iter();
    left.filter(|(field, _)| !by_itself(field))
        .map(|(field, problem)| {
            let field = format!("spec.matchResources.{field}");
            let help = "a request has to match both: the policy is never evaluated through this binding";
            warning(document, "binding-matches-nothing", &field, problem, help)
        })
        .collect()
}

/// Whether some request could match both rules. Other versions of a resource count as the same under matchPolicy
/// Equivalent, so that versions are not compared.
fn intersects(a: &Rule, b: &Rule) -> bool {
    let operations = |rule: &Rule| rule.operations.clone().unwrap_or_else(|| ALL_OPERATIONS.to_vec());
    let scopes = !matches!(
        (a.scope, b.scope),
        (ScopeRule::Namespaced, ScopeRule::Cluster) | (ScopeRule::Cluster, ScopeRule::Namespaced)
    );
    scopes
        && operations(a).iter().any(|operation| operations(b).contains(operation))
        && a.groups.iter().any(|a| b.groups.iter().any(|b| same(a, b)))
        && a.resources.iter().any(|a| b.resources.iter().any(|b| same_resource(a, b)))
        && (a.resource_names.is_empty()
            || b.resource_names.is_empty()
            || a.resource_names.iter().any(|name| b.resource_names.contains(name)))
}

const ALL_OPERATIONS: [Operation; 4] =
    [Operation::Create, Operation::Update, Operation::Delete, Operation::Connect];

fn same(a: &str, b: &str) -> bool {
    a == "*" || b == "*" || a == b
}

fn same_resource(a: &str, b: &str) -> bool {
    let parts = |resource: &str| {
        let (name, sub) = resource.split_once('/').unwrap_or((resource, ""));
        (name.to_owned(), sub.to_owned())
    };
    let ((a, a_sub), (b, b_sub)) = (parts(a), parts(b));
    same(&a, &b) && same(&a_sub, &b_sub)
}

/// The resources of a group.
#[derive(Default)]
struct Served<'c> {
    /// As many as are named.
    first: Vec<&'c str>,
    all: HashSet<&'c str>,
}

/// By group, what definitions serve.
fn served<'c>(compiled: &'c Compiled<'_>) -> HashMap<&'c str, Served<'c>> {
    let mut served: HashMap<&str, Served<'_>> = HashMap::new();
    for definition in &compiled.named {
        let plural = definition.names.plural.as_str();
        let served = served.entry(&definition.group).or_default();
        if served.all.insert(plural) && served.first.len() < NAMED {
            served.first.push(plural);
        }
    }
    served
}

/// Resources of groups whose definitions are all at hand, and that none of these serves.
fn unserved(document: &Document, policy: &Policy, served: &HashMap<&str, Served<'_>>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, rule) in policy.constraints.rules.iter().enumerate() {
        let [group] = rule.groups.as_slice() else { continue };
        let Some(served) = served.get(group.as_str()) else { continue };
        for (position, resource) in rule.resources.iter().enumerate() {
            let name = resource.split('/').next().unwrap_or_default();
            if name == "*" || served.all.contains(name) {
                continue;
            }
            let field = format!("spec.matchConstraints.resourceRules[{index}].resources[{position}]");
            let named = served.first.join(", ");
            let more = match served.all.len().saturating_sub(served.first.len()) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let problem = format!("`{name}` is no resource of {group}: there is {named}{more}");
            findings.push(warning(
                document,
                "matches-nothing",
                &field,
                problem,
                "resources are named by their plural",
            ));
        }
    }
    findings
}
