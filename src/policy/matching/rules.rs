//! Matches one resource rule: operations, groups, versions, resources with subresources, scope and names.

use crate::request::{GroupVersionResource, Operation, Request};

/// An item of `resourceRules` or `excludeResourceRules`.
#[derive(Clone, Debug, Default)]
pub struct Rule {
    /// `None` stands for every operation (`*`).
    pub operations: Option<Vec<Operation>>,
    pub groups: Vec<String>,
    pub versions: Vec<String>,
    /// `resource`, `resource/subresource`, with `*` for either part.
    pub resources: Vec<String>,
    pub scope: ScopeRule,
    /// Empty means any name.
    pub resource_names: Vec<String>,
}

/// The `scope` of a rule.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ScopeRule {
    #[default]
    All,
    Namespaced,
    Cluster,
}

impl Rule {
    /// Whether the rule matches `request`, treated as a request for `resource`; names are not compared.
    pub(crate) fn matches(&self, request: &Request<'_>, resource: &GroupVersionResource) -> bool {
        self.scope_matches(request, resource)
            && self.operations.as_ref().is_none_or(|operations| operations.contains(&request.operation))
            && any_or(&self.groups, &resource.group)
            && any_or(&self.versions, &resource.version)
            && self.resource_matches(&resource.resource, &request.subresource)
    }

    /// Whether it names operations and resources, and nothing else decides.
    pub(crate) fn asks_for_kinds_alone(&self) -> bool {
        self.scope == ScopeRule::All && self.resource_names.is_empty()
    }

    pub(crate) fn names(&self, name: &str) -> bool {
        self.resource_names.is_empty() || self.resource_names.iter().any(|allowed| allowed == name)
    }

    pub(super) fn speaks_of_group(&self, group: &str) -> bool {
        any_or(&self.groups, group)
    }

    pub(super) fn scope_matches(&self, request: &Request<'_>, resource: &GroupVersionResource) -> bool {
        // A Namespace carries its own name as its namespace, and is cluster-scoped all the same.
        let cluster = request.namespace.is_empty()
            || (resource.group.is_empty() && resource.version == "v1" && resource.resource == "namespaces");
        match self.scope {
            ScopeRule::All => true,
            ScopeRule::Namespaced => !cluster,
            ScopeRule::Cluster => cluster,
        }
    }

    pub(super) fn resource_matches(&self, resource: &str, subresource: &str) -> bool {
        self.resources.iter().any(|rule| {
            let (wanted, wanted_sub) = rule.split_once('/').unwrap_or((rule, ""));
            (wanted == "*" || wanted == resource) && (wanted_sub == "*" || wanted_sub == subresource)
        })
    }
}

fn any_or(items: &[String], requested: &str) -> bool {
    items.iter().any(|item| item == "*" || item == requested)
}
