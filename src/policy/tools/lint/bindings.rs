//! Finds policies without bindings, and bindings that name no policy, match nothing or lack params.

use std::collections::{HashMap, HashSet};

use admit_apimachinery::pointer::text;
use admit_apimachinery::suggest::{self, did_you_mean};

use super::resources::Served;
use super::{Compiled, Finding, nothing, warning};
use crate::matching::{MatchResources, Rule, ScopeRule};
use crate::read::manifest::Document;
use crate::request::Operation;
use crate::vap::{Binding, Policy, Types};

/// Bindings without a policy for which the names of all policies are gone through.
const SUGGESTIONS: usize = 100;

pub(super) fn lint(compiled: &Compiled<'_>, documents: &[&Document], builtin: &dyn Types) -> Vec<Finding> {
    let mut findings = Vec::new();
    // What does not compile is there all the same.
    let texts = |kind: &'static str, pointer: &'static str| {
        documents
            .iter()
            .filter(move |document| text(&document.value, "/kind") == kind)
            .map(move |one| text(&one.value, pointer))
    };
    let bound: HashSet<&str> = texts("ValidatingAdmissionPolicyBinding", "/spec/policyName").collect();
    let there: HashSet<&str> = texts("ValidatingAdmissionPolicy", "/metadata/name").collect();
    let mut names: Vec<&str> = there.iter().copied().collect();
    names.sort_unstable();
    let mut missing = 0_usize;
    let mut by_name: HashMap<&str, &Policy> = HashMap::new();
    for (_, policy) in &compiled.policies {
        by_name.entry(&policy.name).or_insert(policy);
    }
    let served = Served::of(compiled, builtin);
    for (document, policy) in &compiled.policies {
        if !bound.contains(&*policy.name) {
            let problem = "no binding names this policy".to_owned();
            let help = "without a ValidatingAdmissionPolicyBinding it is never evaluated";
            findings.push(warning(document, "no-binding", "metadata.name", problem, help));
        }
        findings.extend(served.lint(document, policy));
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
                let near = (missing < SUGGESTIONS)
                    .then(|| suggest::nearest(&binding.policy_name, names.iter().copied()));
                missing = missing.saturating_add(1);
                let help = did_you_mean(near.flatten());
                findings.push(warning(document, "no-policy", "spec.policyName", problem, &help));
            }
        }
    }
    findings
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

/// Reports a binding that leaves nothing of what its policy matches, unless the policy itself matches nothing.
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
