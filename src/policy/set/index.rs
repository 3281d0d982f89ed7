//! Indexes policies by resource and operation, so that the size of a set does not slow down requests that few of its policies match.
//!
//! Input: the rules of all policies, once; then a request's resource and operation. Output: positions of policies
//! that have a rule for them. Scope, names and selectors are left to matching, which checks the whole rule; policies
//! that constrain none of them are marked as needing no further check, so that they are not even read.
//!
//! Every combination of group, version, resource and subresource that a rule names is a key, where a wildcard stands
//! for itself. A request is looked up once for each combination of wildcards that any rule uses; rules without
//! wildcards need one look-up only.

use std::collections::HashMap;

use crate::matching::{MatchPolicy, Rule};
use crate::request::host::Host;
use crate::request::{GroupVersionResource, Operation, Request};
use crate::vap::Policy;

/// The index of one set.
#[derive(Debug, Default)]
pub(crate) struct PolicyIndex {
    /// The parts of all keys, numbered, so that keys are small and a look-up of a part that no rule names ends at once.
    parts: HashMap<Box<str>, Part>,
    entries: HashMap<Key, Vec<Entry>>,
    /// The combinations of wildcards that occur in keys.
    shapes: Vec<[bool; 4]>,
    /// Whether some policy also matches other versions of its resources (matchPolicy Equivalent).
    any_equivalent: bool,
}

/// Group, version, resource, subresource; `None` is the wildcard.
type Key = [Option<Part>; 4];
type Part = u32;

#[derive(Clone, Copy, Debug)]
struct Entry {
    position: u32,
    operations: Operations,
    /// Whether the policy takes the rule to name other versions too.
    equivalent: bool,
    /// Whether key and operations decide the match completely.
    sufficient: bool,
}

/// A policy that may match a request.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Candidate {
    pub(crate) position: usize,
    pub(crate) certainty: Certainty,
}

/// How certain a match is, the most certain first.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Certainty {
    /// It matches the request as it is.
    Matches,
    /// The match must be checked completely.
    Open,
}

/// A set of operations.
#[derive(Clone, Copy, Debug)]
struct Operations(u8);

impl PolicyIndex {
    /// Builds the index of `policies`, which are identified by position. `None` entries are left out.
    pub(crate) fn of<'p>(policies: impl IntoIterator<Item = Option<&'p Policy>>) -> Self {
        let mut index = Self::default();
        for (position, policy) in (0_u32..).zip(policies) {
            let Some(policy) = policy else { continue };
            let constraints = &policy.constraints;
            let equivalent = constraints.match_policy == MatchPolicy::Equivalent;
            index.any_equivalent |= equivalent;
            for rule in &constraints.rules {
                let sufficient = rule.asks_for_kinds_alone() && constraints.ask_for_rules_alone();
                let entry = Entry { position, operations: Operations::of(rule), equivalent, sufficient };
                index.insert(rule, entry);
            }
        }
        index
    }

    /// The policies, by ascending position, with a rule for the operation of `request` on its resource, or on one
    /// that `host` reports as the same in another version.
    pub(crate) fn candidates(&self, request: &Request<'_>, host: &dyn Host) -> Vec<Candidate> {
        let mut found = Vec::new();
        self.look_up(&request.resource, request, false, &mut found);
        if self.any_equivalent {
            for (equivalent, _) in host.equivalents(&request.resource, &request.subresource) {
                self.look_up(&equivalent, request, true, &mut found);
            }
        }
        found.sort_unstable();
        found.dedup_by_key(|candidate| candidate.position);
        found
    }

    fn insert(&mut self, rule: &Rule, entry: Entry) {
        for group in &rule.groups {
            for version in &rule.versions {
                for resource in &rule.resources {
                    let (name, subresource) = resource.split_once('/').unwrap_or((resource, ""));
                    let key = [group, version, name, subresource].map(|part| self.part(part));
                    let shape = key.map(|part| part.is_none());
                    if !self.shapes.contains(&shape) {
                        self.shapes.push(shape);
                    }
                    self.entries.entry(key).or_default().push(entry);
                }
            }
        }
    }

    /// The number of a part of a rule; none for the wildcard.
    fn part(&mut self, text: &str) -> Option<Part> {
        if text == "*" {
            return None;
        }
        if let Some(part) = self.parts.get(text) {
            return Some(*part);
        }
        let part = Part::try_from(self.parts.len()).unwrap_or(Part::MAX);
        self.parts.insert(text.into(), part);
        Some(part)
    }

    fn look_up(
        &self,
        resource: &GroupVersionResource,
        request: &Request<'_>,
        as_equivalent: bool,
        found: &mut Vec<Candidate>,
    ) {
        let GroupVersionResource { group, version, resource } = resource;
        let parts = [group, version, resource, &request.subresource]
            .map(|text| self.parts.get(text.as_str()).copied());
        for shape in &self.shapes {
            let Some(key) = masked(parts, *shape) else { continue };
            let entries = self.entries.get(&key).map(Vec::as_slice).unwrap_or_default();
            found.reserve(entries.len());
            let concerned = entries.iter().filter(|entry| {
                entry.operations.contain(request.operation) && (entry.equivalent || !as_equivalent)
            });
            found.extend(concerned.filter_map(|entry| {
                let certain = entry.sufficient && !as_equivalent;
                let certainty = if certain { Certainty::Matches } else { Certainty::Open };
                Some(Candidate { position: usize::try_from(entry.position).ok()?, certainty })
            }));
        }
    }
}

/// Returns the key of a request under one combination of wildcards; None if no rule names one of the remaining parts.
fn masked(parts: [Option<Part>; 4], wildcards: [bool; 4]) -> Option<Key> {
    let mut key = parts;
    for (part, is_wildcard) in key.iter_mut().zip(wildcards) {
        if is_wildcard {
            *part = None;
        } else if part.is_none() {
            return None;
        }
    }
    Some(key)
}

impl Operations {
    const ALL: Self = Self(u8::MAX);

    fn of(rule: &Rule) -> Self {
        match &rule.operations {
            None => Self::ALL,
            Some(operations) => Self(operations.iter().fold(0, |set, operation| set | Self::bit(*operation))),
        }
    }

    const fn contain(self, operation: Operation) -> bool {
        self.0 & Self::bit(operation) != 0
    }

    const fn bit(operation: Operation) -> u8 {
        match operation {
            Operation::Create => 1,
            Operation::Update => 2,
            Operation::Delete => 4,
            Operation::Connect => 8,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::Documents;

    const GROUPS: [&str; 3] = ["", "apps", "autoscaling"];
    const VERSIONS: [&str; 2] = ["v1", "v2"];
    const RESOURCES: [&str; 3] = ["pods", "deployments", "horizontalpodautoscalers"];

    /// Returns every combination of group, version and resource from `words` and `more`.
    fn combinations(more: &[&'static str]) -> Vec<[&'static str; 3]> {
        let with = |words: &[&'static str]| [words, more].concat();
        let (versions, resources) = (with(&VERSIONS), with(&RESOURCES));
        let pairs = |group| versions.iter().map(move |version| [group, *version]);
        let pairs: Vec<[&str; 2]> = with(&GROUPS).into_iter().flat_map(pairs).collect();
        let triples = |[group, version]: [&'static str; 2]| {
            resources.iter().map(move |resource| [group, version, *resource])
        };
        pairs.into_iter().flat_map(triples).collect()
    }

    /// Policies for every combination of single words and wildcards, by Exact and Equivalent.
    fn policies() -> Vec<Policy> {
        let mut policies = Vec::new();
        for [group, version, resource] in combinations(&["*"]) {
            let subresources = ["", "/status", "/*"].map(|subresource| format!("{resource}{subresource}"));
            let operation = if policies.len() % 4 == 0 { "*" } else { "UPDATE" };
            policies.extend(subresources.iter().flat_map(|resource| {
                let rule = json!({
                    "apiGroups": [group], "apiVersions": [version], "operations": [operation],
                    "resources": [resource],
                });
                ["Exact", "Equivalent"].map(|match_policy| policy(match_policy, &rule))
            }));
        }
        policies
    }

    fn policy(match_policy: &str, rule: &Value) -> Policy {
        constrained(&json!({"matchPolicy": match_policy, "resourceRules": [rule]}))
    }

    fn constrained(constraints: &Value) -> Policy {
        Policy::compile(&json!({
            "metadata": {"name": "p"},
            "spec": {"matchConstraints": constraints, "validations": [{"expression": "true"}]},
        }))
        .unwrap()
    }

    fn positions(candidates: &[Candidate]) -> Vec<usize> {
        candidates.iter().map(|candidate| candidate.position).collect()
    }

    fn request(
        group: &str,
        version: &str,
        resource: &str,
        subresource: &str,
        operation: &str,
    ) -> Request<'static> {
        Request::from_value(&json!({
            "kind": {"group": group, "version": version, "kind": "K"},
            "resource": {"group": group, "version": version, "resource": resource},
            "subResource": subresource, "operation": operation, "namespace": "n",
        }))
        .unwrap()
    }

    #[test]
    fn the_candidates_are_those_that_match() {
        let (policies, host) = (policies(), Documents::default());
        let index = PolicyIndex::of(policies.iter().map(Some));
        for [group, version, resource] in combinations(&[]) {
            for (subresource, operation) in [("", "CREATE"), ("status", "UPDATE"), ("log", "CONNECT")] {
                let request = request(group, version, resource, subresource, operation);
                let matches =
                    |policy: &Policy| policy.constraints.matches(&request, &host).is_ok_and(|m| m.is_some());
                let expected: Vec<usize> =
                    (0..).zip(&policies).filter(|(_, policy)| matches(policy)).map(|(at, _)| at).collect();
                assert_eq!(positions(&index.candidates(&request, &host)), expected, "{request:?}");
            }
        }
    }

    /// Returns criteria that rules and policies may have beside resources, the empty one first.
    fn further_questions() -> Vec<(Value, Value)> {
        let selector = json!({"matchLabels": {"a": "b"}});
        let excluded =
            json!([{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}]);
        vec![
            (json!({}), json!({})),
            (json!({"scope": "Cluster"}), json!({})),
            (json!({"scope": "Namespaced"}), json!({})),
            (json!({"resourceNames": ["other"]}), json!({})),
            (json!({}), json!({"namespaceSelector": selector})),
            (json!({}), json!({"objectSelector": selector})),
            (json!({}), json!({"excludeResourceRules": excluded})),
        ]
    }

    #[test]
    fn what_is_certain_would_match() {
        let host = Documents::default();
        let mut certain = Vec::new();
        for (of_rule, of_policy) in further_questions() {
            let mut rule = json!({
                "apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["deployments"],
            });
            rule.as_object_mut().unwrap().extend(of_rule.as_object().unwrap().clone());
            let mut constraints = json!({"resourceRules": [rule]});
            constraints.as_object_mut().unwrap().extend(of_policy.as_object().unwrap().clone());
            let policy = constrained(&constraints);
            let index = PolicyIndex::of([Some(&policy)]);
            for version in ["v1", "v1beta1"] {
                let request = request("apps", version, "deployments", "", "CREATE");
                for candidate in index.candidates(&request, &host) {
                    let matched = policy.constraints.matches(&request, &host);
                    let as_it_is = matched.is_ok_and(|matched| matched.is_some_and(|m| m.is_as_it_is()));
                    let known = candidate.certainty == Certainty::Matches;
                    assert!(!known || as_it_is, "{version}: {constraints}");
                    certain.push(known);
                }
            }
        }
        let [first, rest @ ..] = certain.as_slice() else { panic!("nothing was found") };
        assert!(*first && rest.len() > 4 && rest.iter().all(|known| !known), "{certain:?}");
    }

    #[test]
    fn policies_that_speak_of_something_else_are_not_looked_at() {
        let rule = |resource: &str| json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": [resource]});
        let mut policies: Vec<Policy> =
            (0..500).map(|n| policy("Equivalent", &rule(&format!("widgets{n}")))).collect();
        policies.push(policy("Equivalent", &rule("pods")));
        let index = PolicyIndex::of(policies.iter().map(Some));
        let pods = request("", "v1", "pods", "", "CREATE");
        assert_eq!(positions(&index.candidates(&pods, &Documents::default())), [500]);
        assert_eq!(index.shapes.len(), 1, "without wildcards there is one thing to look up");
        let unbound = PolicyIndex::of(policies.iter().map(|_| None));
        assert!(unbound.candidates(&pods, &Documents::default()).is_empty());
    }
}
