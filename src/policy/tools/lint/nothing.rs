//! Finds constraints that match nothing: contradictory selectors, and resource rules that are excluded completely.

use std::collections::{BTreeMap, BTreeSet};

use admit_apimachinery::selector::{Requirement, SelectorOperator};

use crate::matching::{MatchResources, Rule, ScopeRule};
use crate::request::Operation;

/// A field, and why it leaves nothing.
pub(super) type Nothing = (&'static str, String);

/// What of `constraints` leaves nothing over; those of a policy and its binding together, where there are `more`.
pub(super) fn left(constraints: &MatchResources, more: Option<&MatchResources>) -> Vec<Nothing> {
    let all = || std::iter::once(constraints).chain(more);
    let mut found = Vec::new();
    let namespaces = all().flat_map(|one| one.namespace_selector.requirements());
    if let Some(key) = contradiction(namespaces) {
        let problem = format!("no value of label `{key}` is left: no namespace is selected");
        found.push(("namespaceSelector", problem));
    }
    if let Some(key) = contradiction(all().flat_map(|one| one.object_selector.requirements())) {
        found.push(("objectSelector", format!("no value of label `{key}` is left: no object is selected")));
    }
    let excluded = |rule: &Rule| all().flat_map(|one| &one.excludes).any(|exclude| covers(exclude, rule));
    if !constraints.rules.is_empty() && constraints.rules.iter().all(excluded) {
        found.push(("excludeResourceRules", "everything that resourceRules match is excluded".to_owned()));
    }
    found
}

/// The combined requirements on one label.
#[derive(Default)]
struct Label<'s> {
    /// The intersection of all lists that a value must be in, if there are any.
    allowed: Option<BTreeSet<&'s str>>,
    denied: BTreeSet<&'s str>,
    present: bool,
    absent: bool,
}

/// A label that cannot be as all requirements want it.
fn contradiction<'s>(requirements: impl Iterator<Item = &'s Requirement>) -> Option<&'s str> {
    let mut labels: BTreeMap<&str, Label<'_>> = BTreeMap::new();
    for Requirement { key, operator, values, .. } in requirements {
        let label = labels.entry(key).or_default();
        let listed = || values.iter().map(String::as_str).collect::<BTreeSet<_>>();
        match operator {
            SelectorOperator::In => {
                let listed = listed();
                label.allowed = Some(match label.allowed.take() {
                    Some(earlier) => earlier.intersection(&listed).copied().collect(),
                    None => listed,
                });
            }
            SelectorOperator::NotIn => label.denied.extend(listed()),
            SelectorOperator::Exists => label.present = true,
            SelectorOperator::DoesNotExist => label.absent = true,
            // Policies do not support comparisons; they still require the label to exist.
            SelectorOperator::GreaterThan | SelectorOperator::LessThan => label.present = true,
        }
    }
    let impossible = |label: &Label<'_>| {
        let none_left = label.allowed.as_ref().is_some_and(|allowed| allowed.is_subset(&label.denied));
        none_left || label.absent && (label.present || label.allowed.is_some())
    };
    labels.into_iter().find(|(_, label)| impossible(label)).map(|(key, _)| key)
}

/// Whether `wide` matches every request that `narrow` does.
fn covers(wide: &Rule, narrow: &Rule) -> bool {
    let among = |wide: &[String], narrow: &[String]| {
        wide.iter().any(|one| one == "*") || narrow.iter().all(|one| wide.contains(one))
    };
    let every = [Operation::Create, Operation::Update, Operation::Delete, Operation::Connect];
    let operations = match (&wide.operations, &narrow.operations) {
        (None, _) => true,
        (Some(wide), None) => every.iter().all(|one| wide.contains(one)),
        (Some(wide), Some(narrow)) => narrow.iter().all(|one| wide.contains(one)),
    };
    operations
        && (wide.scope == ScopeRule::All || wide.scope == narrow.scope)
        && among(&wide.groups, &narrow.groups)
        && among(&wide.versions, &narrow.versions)
        && narrow.resources.iter().all(|narrow| wide.resources.iter().any(|wide| holds(wide, narrow)))
        && (wide.resource_names.is_empty()
            || !narrow.resource_names.is_empty()
                && narrow.resource_names.iter().all(|name| wide.resource_names.contains(name)))
}

/// The same of a resource with its subresource.
fn holds(wide: &str, narrow: &str) -> bool {
    let parts = |resource: &str| {
        let (name, below) = resource.split_once('/').unwrap_or((resource, ""));
        (name.to_owned(), below.to_owned())
    };
    let ((wide, wide_below), (narrow, narrow_below)) = (parts(wide), parts(narrow));
    (wide == "*" || wide == narrow) && (wide_below == "*" || wide_below == narrow_below)
}

#[cfg(test)]
mod tests {
    use super::contradiction;
    use admit_apimachinery::selector::{Requirement, SelectorOperator};

    #[test]
    fn labels_that_cannot_be_are_found() {
        use SelectorOperator::{DoesNotExist, Exists, In, NotIn};
        for (requirements, expected) in [
            (vec![(In, "a b"), (NotIn, "a")], false),
            (vec![(In, "a"), (NotIn, "a b")], true),
            (vec![(In, "a b"), (In, "b c")], false),
            (vec![(In, "a"), (In, "b")], true),
            (vec![(Exists, ""), (DoesNotExist, "")], true),
            (vec![(In, "a"), (DoesNotExist, "")], true),
            (vec![(NotIn, "a"), (DoesNotExist, "")], false),
        ] {
            let made: Vec<Requirement> = requirements
                .iter()
                .map(|(operator, values)| {
                    let values = values.split_whitespace().map(str::to_owned).collect();
                    Requirement::new("k".to_owned(), *operator, values)
                })
                .collect();
            assert_eq!(contradiction(made.iter()).is_some(), expected, "{requirements:?}");
        }
    }
}
