//! Finds resources in policies that no server serves or that policies are never asked about.

use std::collections::{BTreeMap, BTreeSet};

use admit_apimachinery::suggest::{self, did_you_mean};

use super::{Compiled, Finding, warning};
use crate::matching::{self, Rule};
use crate::read::manifest::Document;
use crate::vap::{Policy, Types};

/// The maximum number of resources of a group to list when another one is unknown.
const NAMED: usize = 10;

/// The resources of groups that have no others.
pub(super) struct Served<'c> {
    groups: BTreeMap<&'c str, Group<'c>>,
}

#[derive(Default)]
struct Group<'c> {
    /// The first resources, in the order of the definitions, as many as are listed.
    first: Vec<&'c str>,
    all: BTreeSet<&'c str>,
}

impl<'c> Served<'c> {
    /// Collects the resources that definitions serve, and the built-in ones.
    pub(super) fn of(compiled: &'c Compiled<'_>, builtin: &'c dyn Types) -> Self {
        let defined = compiled.named.iter().map(|of| (of.group.as_str(), of.names.plural.as_str()));
        let mut groups: BTreeMap<&str, Group<'_>> = BTreeMap::new();
        for (group, resource) in defined.chain(builtin.built_in()) {
            let group = groups.entry(group).or_default();
            if group.all.insert(resource) && group.first.len() < NAMED {
                group.first.push(resource);
            }
        }
        Self { groups }
    }

    pub(super) fn lint(&self, document: &Document, policy: &Policy) -> Vec<Finding> {
        let rules = &policy.constraints.rules;
        if !rules.is_empty() && rules.iter().all(is_exempt) {
            let problem =
                "policies are not asked about policies, bindings and webhooks of admission".to_owned();
            let help =
                "a server leaves its own configuration out, so that what is wrong with it can be mended";
            let field = "spec.matchConstraints.resourceRules";
            return vec![warning(document, "matches-nothing", field, problem, help)];
        }
        let rules = rules.iter().enumerate();
        rules.flat_map(|(index, rule)| self.of_rule(document, index, rule)).collect()
    }

    fn of_rule(&self, document: &Document, index: usize, rule: &Rule) -> Vec<Finding> {
        // A group with unknown resources may serve any.
        let groups: Option<Vec<&Group<'_>>> =
            rule.groups.iter().map(|group| self.groups.get(group.as_str())).collect();
        let Some(groups) = groups else { return Vec::new() };
        let missing = rule.resources.iter().enumerate().filter_map(|(position, resource)| {
            let name = resource.split('/').next().unwrap_or_default();
            let is_there = name == "*" || groups.iter().any(|group| group.all.contains(name));
            (!is_there).then_some((position, name))
        });
        missing
            .map(|(position, name)| {
                let field = format!("spec.matchConstraints.resourceRules[{index}].resources[{position}]");
                let problem = format!("`{name}` is no resource of {}: there is {}", of(rule), named(&groups));
                warning(document, "matches-nothing", &field, problem, &self.help(name, &groups))
            })
            .collect()
    }

    /// The resource of these groups that is meant, or the groups that have this one.
    fn help(&self, name: &str, groups: &[&Group<'_>]) -> String {
        let elsewhere: Vec<&str> = self
            .groups
            .iter()
            .filter(|(_, group)| group.all.contains(name))
            .map(|(name, _)| shown(name))
            .collect();
        if !elsewhere.is_empty() {
            return format!("it is one of {}", elsewhere.join(" and of "));
        }
        match suggest::nearest(name, groups.iter().flat_map(|group| group.all.iter().copied())) {
            Some(meant) => did_you_mean(Some(meant)),
            None => "resources are named by their plural".to_owned(),
        }
    }
}

/// `apps`, `the core group`.
fn shown(group: &str) -> &str {
    if group.is_empty() { "the core group" } else { group }
}

fn of(rule: &Rule) -> String {
    let groups: Vec<&str> = rule.groups.iter().map(|group| shown(group)).collect();
    groups.join(" and of ")
}

/// The first of all resources.
fn named(groups: &[&Group<'_>]) -> String {
    let first: Vec<&str> = groups.iter().flat_map(|group| group.first.iter().copied()).take(NAMED).collect();
    let all: usize = groups.iter().map(|group| group.all.len()).sum();
    match all.saturating_sub(first.len()) {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

/// Whether policies never apply to any object of the rule.
fn is_exempt(rule: &Rule) -> bool {
    rule.groups.iter().all(|group| group == matching::EXEMPT_GROUP)
        && rule.resources.iter().all(|resource| {
            let name = resource.split('/').next().unwrap_or_default();
            name == "*" || matching::EXEMPT.iter().any(|(_, plural)| *plural == name)
        })
}
