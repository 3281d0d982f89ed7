//! Determines which policies apply to a request and which of its objects they read: what none reads may be unknown.

use std::collections::HashSet;
use std::sync::Arc;

use admit_policy::manifest::Document;
use admit_policy::matching::{MatchPolicy, MatchResources, Rule, ScopeRule};
use admit_policy::{Binding, GroupVersionResource, Host as _, Operation, Policy, PolicySet};
use serde_json::Value;

use super::report::Cause;

/// The policies of one folder.
#[derive(Debug)]
pub struct Side<'s> {
    pub(super) set: &'s PolicySet,
    /// Whether roles or authorizer answers were given.
    pub(super) knows_access: bool,
    /// The literal messages of the policies.
    fixed: HashSet<String>,
    validating: Vec<Sight>,
    mutating: Vec<Sight>,
}

/// What one policy reads.
#[derive(Debug)]
pub(super) struct Sight {
    pub(super) name: Arc<str>,
    constraints: MatchResources,
    object: bool,
    old_object: bool,
    options: bool,
    namespace: bool,
    kind: bool,
    /// Whether its params may be Secrets.
    pub(super) secret_params: bool,
}

/// The unknown parts of a request, each with the cause.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Unknown {
    pub(super) object: Option<Cause>,
    pub(super) old_object: Option<Cause>,
    pub(super) options: Option<Cause>,
    pub(super) kind: Option<Cause>,
}

/// The properties of a request that match rules test.
#[derive(Clone, Copy, Debug)]
pub(super) struct Concern<'r> {
    pub(super) operation: Operation,
    pub(super) resource: &'r GroupVersionResource,
    pub(super) subresource: &'r str,
}

impl<'s> Side<'s> {
    /// Takes the set and the `documents` it was made of; `knows_access` says whether the set can answer authorization checks.
    #[must_use]
    pub fn new(set: &'s PolicySet, documents: &[Document], knows_access: bool) -> Self {
        let bound = set.policies().filter(|(_, bindings)| !bindings.is_empty());
        let mutating = set.mutating_policies().filter(|(_, bindings)| !bindings.is_empty());
        Self {
            set,
            knows_access,
            fixed: documents.iter().flat_map(|document| messages(&document.value)).collect(),
            validating: bound.map(|(policy, bindings)| Sight::of(policy, bindings)).collect(),
            // They produce the new object, which requires the old one to be known.
            mutating: mutating
                .map(|(policy, bindings)| Sight {
                    object: true,
                    old_object: true,
                    ..Sight::of(policy.common(), bindings)
                })
                .collect(),
        }
    }

    pub(crate) fn set(&self) -> &'s PolicySet {
        self.set
    }

    /// Reports whether the policy has Secrets as params.
    pub(crate) fn has_secret_params(&self, policy: &str) -> bool {
        let mut sights = self.validating.iter().chain(&self.mutating);
        sights.any(|sight| &*sight.name == policy && sight.secret_params)
    }

    /// Reports whether the message is a literal of a policy, and so contains no values of objects.
    pub(crate) fn is_fixed(&self, message: &str) -> bool {
        self.fixed.contains(message)
    }

    /// Returns the validating policies that may match.
    pub(super) fn validating(&self, concern: Concern<'_>) -> Vec<&Sight> {
        self.concerned(&self.validating, concern)
    }

    /// Returns the mutating policies that may match.
    pub(super) fn mutating(&self, concern: Concern<'_>) -> Vec<&Sight> {
        if concern.operation == Operation::Delete {
            return Vec::new();
        }
        self.concerned(&self.mutating, concern)
    }

    fn concerned<'t>(&self, sights: &'t [Sight], concern: Concern<'_>) -> Vec<&'t Sight> {
        let mut seen_as = vec![concern.resource.clone()];
        let others = self.set.documents().equivalents(concern.resource, concern.subresource);
        seen_as.extend(others.into_iter().map(|(resource, _)| resource));
        sights.iter().filter(|sight| sight.may_match(concern, &seen_as)).collect()
    }

    /// Reports whether a policy or definition may ever apply to objects of the resource.
    pub(super) fn speaks_of(&self, group: &str, resource: &str) -> bool {
        let names = |rule: &Rule| {
            let named = |one: &String| {
                let name = one.split_once('/').map_or(one.as_str(), |(name, _)| name);
                name == "*" || name == resource
            };
            rule.groups.iter().any(|one| one == "*" || one == group) && rule.resources.iter().any(named)
        };
        let speaks = |sight: &Sight| {
            let MatchResources { rules, match_policy, .. } = &sight.constraints;
            rules.is_empty()
                || rules.iter().any(names)
                || *match_policy == MatchPolicy::Equivalent && {
                    // A resource that is served in several groups has the same name in all of them.
                    rules.iter().any(|rule| rule.resources.iter().any(|one| one == resource))
                }
        };
        self.validating.iter().chain(&self.mutating).any(speaks) || self.defines(group, resource)
    }

    /// Reports whether a policy may read the request's Namespace.
    pub(super) fn asks_for_namespaces(&self) -> bool {
        self.validating.iter().chain(&self.mutating).any(|sight| sight.namespace)
    }

    /// Reports whether a definition of the resource was given.
    pub(super) fn defines(&self, group: &str, resource: &str) -> bool {
        self.set.documents().crds().iter().any(|crd| {
            let definition = crd.definition();
            definition.group == group && definition.names.plural == resource
        })
    }
}

impl Sight {
    fn of(policy: &Policy, bindings: &[Binding]) -> Self {
        let expressions = policy.expressions();
        // Names have one spelling, so a variable is read only where its name occurs in the text, whatever else has that name.
        let says = |word: &str| expressions.iter().any(|expression| expression.text.contains(word));
        // A binding may narrow what its policy matches.
        let matching = bindings.iter().filter_map(|binding| binding.match_resources.as_ref());
        let matching: Vec<&MatchResources> = matching.chain([&policy.constraints]).collect();
        let selects = matching.iter().any(|matching| !matching.object_selector.is_empty());
        let by_namespace = matching.iter().any(|matching| !matching.namespace_selector.is_empty());
        let params = policy.param_kind.as_ref();
        Self {
            name: Arc::clone(&policy.name),
            constraints: policy.constraints.clone(),
            object: selects || says("object"),
            old_object: selects || says("oldObject"),
            options: says("options"),
            kind: says("kind") || says("Kind"),
            namespace: says("namespaceObject") || by_namespace,
            secret_params: params.is_some_and(|kind| kind.group.is_empty() && kind.kind == "Secret"),
        }
    }

    /// Returns why the policy cannot be evaluated, if it reads something unknown.
    pub(super) fn hindered(&self, unknown: &Unknown) -> Option<Cause> {
        let object = unknown.object.filter(|_| self.object);
        let old_object = unknown.old_object.filter(|_| self.old_object);
        let options = unknown.options.filter(|_| self.options);
        object.or(old_object).or(options).or(unknown.kind.filter(|_| self.kind))
    }

    /// Reports whether its rules may match the request; names, selectors and scopes are left to the decision.
    fn may_match(&self, concern: Concern<'_>, seen_as: &[GroupVersionResource]) -> bool {
        let MatchResources { rules, excludes, match_policy, .. } = &self.constraints;
        let own = seen_as.get(..1).unwrap_or_default();
        let seen_as = if *match_policy == MatchPolicy::Equivalent { seen_as } else { own };
        let any = |rule: &Rule, seen_as: &[GroupVersionResource]| {
            seen_as.iter().any(|resource| names(rule, concern, resource))
        };
        let whole = |rule: &Rule| rule.scope == ScopeRule::All && rule.resource_names.is_empty();
        if excludes.iter().any(|rule| whole(rule) && any(rule, own)) {
            return false;
        }
        rules.is_empty() || rules.iter().any(|rule| any(rule, seen_as))
    }
}

/// Reports whether a rule names the operation, resource and subresource.
fn names(rule: &Rule, concern: Concern<'_>, resource: &GroupVersionResource) -> bool {
    let has = |list: &[String], one: &str| list.iter().any(|item| item == "*" || item == one);
    let named = |one: &String| {
        let (name, subresource) = one.split_once('/').unwrap_or((one, ""));
        (name == "*" || name == resource.resource)
            && (subresource == "*" || subresource == concern.subresource)
    };
    rule.operations.as_ref().is_none_or(|operations| operations.contains(&concern.operation))
        && has(&rule.groups, &resource.group)
        && has(&rule.versions, &resource.version)
        && rule.resources.iter().any(named)
}

/// Returns the literal messages of a policy, and the defaults for missing ones.
fn messages(policy: &Value) -> Vec<String> {
    let validations = policy.pointer("/spec/validations").and_then(Value::as_array);
    let told = |one: &Value| {
        let text = |field: &str| one.get(field).and_then(Value::as_str).unwrap_or_default().trim().to_owned();
        [text("message"), format!("failed expression: {}", text("expression"))]
    };
    validations.into_iter().flatten().flat_map(told).filter(|message| !message.is_empty()).collect()
}
