//! Explains to users why a request does not match a policy. Has no effect on decisions.

use admit_apimachinery::selector::{LabelSelector, Requirement, SelectorOperator};
use admit_cel::Node;

use super::rules::Rule;
use super::selector::labels;
use super::{MatchResources, ScopeRule};
use crate::read::object::node;
use crate::request::Request;
use crate::request::host::Host;

/// Why a request does not match.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Miss {
    /// The field that excludes it: `spec.matchConstraints.namespaceSelector`.
    pub field: String,
    /// What the field requires, and what the request has instead.
    pub reason: String,
}

impl MatchResources {
    /// All reasons why `request` does not match, with fields below `path`; empty where it matches, or where that
    /// cannot be determined.
    pub fn misses(&self, request: &Request<'_>, host: &dyn Host, path: &str) -> Vec<Miss> {
        if !matches!(self.matches(request, host), Ok(None)) {
            return Vec::new();
        }
        let miss = |field: &str, reason: String| Miss { field: format!("{path}.{field}"), reason };
        let mut misses = Vec::new();
        if matches!(self.namespace_matches(request, host), Ok(false)) {
            let namespace = host.namespace(&request.namespace).ok().flatten();
            let labelled = match &namespace {
                Some(namespace) => Node::from_json(namespace),
                None => node(request.object.as_ref()),
            };
            let whose = format!("namespace {}", request.namespace);
            misses.push(miss("namespaceSelector", unselected(&self.namespace_selector, labelled, &whose)));
        }
        if !self.object_matches(request) {
            let object = node(request.object.as_ref().or(request.old_object.as_ref()));
            misses.push(miss("objectSelector", unselected(&self.object_selector, object, "the object")));
        }
        let excludes = |rule: &Rule| self.any_rule(std::slice::from_ref(rule), request, host).is_some();
        if let Some(index) = self.excludes.iter().position(excludes) {
            misses.push(miss(&format!("excludeResourceRules[{index}]"), "leaves the request out".to_owned()));
        }
        if !self.rules.is_empty() && self.any_rule(&self.rules, request, host).is_none() {
            misses.extend(self.rules.iter().enumerate().map(|(index, rule)| {
                miss(&format!("resourceRules[{index}]"), rule.differences(request).join("; "))
            }));
        }
        misses
    }
}

impl Rule {
    /// Lists the criteria of the rule that `request` does not meet.
    fn differences(&self, request: &Request<'_>) -> Vec<String> {
        let mut found = Vec::new();
        let resource = &request.resource;
        let mut compare = |what: &str, asked: String, holds: bool, actual: &str| {
            if !holds {
                found
                    .push(format!("{what} {asked}, not {}", if actual.is_empty() { "\"\"" } else { actual }));
            }
        };
        let any = |items: &[String], actual: &str| items.iter().any(|item| item == "*" || item == actual);
        compare("apiGroups", listed(&self.groups), any(&self.groups, &resource.group), &resource.group);
        compare(
            "apiVersions",
            listed(&self.versions),
            any(&self.versions, &resource.version),
            &resource.version,
        );
        let subresource = &request.subresource;
        let slash = if subresource.is_empty() { "" } else { "/" };
        let full = format!("{}{slash}{subresource}", resource.resource);
        let names_resource = self.resource_matches(&resource.resource, subresource);
        compare("resources", listed(&self.resources), names_resource, &full);
        if let Some(operations) = &self.operations {
            let names: Vec<String> = operations.iter().map(|one| one.as_str().to_owned()).collect();
            let holds = operations.contains(&request.operation);
            compare("operations", listed(&names), holds, request.operation.as_str());
        }
        let (asked, actual) = match self.scope {
            ScopeRule::Cluster => ("Cluster", "Namespaced"),
            ScopeRule::Namespaced | ScopeRule::All => ("Namespaced", "Cluster"),
        };
        compare("scope", asked.to_owned(), self.scope_matches(request, resource), actual);
        compare("resourceNames", listed(&self.resource_names), self.names(&request.name), &request.name);
        found
    }
}

fn listed(names: &[String]) -> String {
    let shown = |name: &String| if name.is_empty() { "\"\"".to_owned() } else { name.clone() };
    format!("[{}]", names.iter().map(shown).collect::<Vec<_>>().join(", "))
}

/// The first requirement that the labels do not meet.
fn unselected(selector: &LabelSelector, labelled: Node<'_>, whose: &str) -> String {
    let value = labels(labelled);
    let Some(requirement) = selector.requirements().find(|one| !one.holds(value(&one.key))) else {
        return format!("does not select {whose}");
    };
    let Requirement { key, operator, values, .. } = requirement;
    let asked = match operator {
        SelectorOperator::In => format!("one of {}", listed(values)),
        SelectorOperator::NotIn => format!("none of {}", listed(values)),
        SelectorOperator::Exists => "any value".to_owned(),
        SelectorOperator::DoesNotExist => "no such label".to_owned(),
        SelectorOperator::GreaterThan => format!("more than {}", listed(values)),
        SelectorOperator::LessThan => format!("less than {}", listed(values)),
    };
    match value(key) {
        Some(actual) => format!("label {key} of {whose} is {actual}; asked for is {asked}"),
        None => format!("{whose} has no label {key}; asked for is {asked}"),
    }
}
