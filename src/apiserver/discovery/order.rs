//! Orders groups, versions and resources: clients take the first version of a group as the preferred one, and resolve
//! an ambiguous short name to the first group that has it.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::resources::ResourceInfo;

/// The rows of one API group by version, the preferred version first.
#[derive(Debug)]
pub(crate) struct Group<'a> {
    /// Empty for the core group.
    pub name: &'a str,
    pub versions: Vec<(&'a str, Vec<&'a ResourceInfo>)>,
}

/// The priorities of groups above the lowest. Groups of equal priority are in discovery's order.
const PRIORITIES: [(&str, i64); 23] = [
    ("", 18_000),
    ("apiregistration.k8s.io", 18_000),
    ("apps", 17_800),
    ("events.k8s.io", 17_750),
    ("authentication.k8s.io", 17_700),
    ("authorization.k8s.io", 17_600),
    ("autoscaling", 17_500),
    ("batch", 17_400),
    ("certificates.k8s.io", 17_300),
    ("networking.k8s.io", 17_200),
    ("policy", 17_100),
    ("rbac.authorization.k8s.io", 17_000),
    ("storage.k8s.io", 16_800),
    ("admissionregistration.k8s.io", 16_700),
    ("apiextensions.k8s.io", 16_700),
    ("scheduling.k8s.io", 16_600),
    ("coordination.k8s.io", 16_500),
    ("node.k8s.io", 16_300),
    ("discovery.k8s.io", 16_200),
    ("resource.k8s.io", 16_200),
    ("flowcontrol.apiserver.k8s.io", 16_100),
    ("config.openshift.io", 1_100),
    ("operator.openshift.io", 1_080),
];
const LEAST: i64 = 1_000;

/// Returns the `groupPriorityMinimum` of a group. Groups of CRDs have the lowest, except two that OpenShift's kube-apiserver puts
/// before the others.
#[must_use]
pub(crate) fn priority(group: &str) -> i64 {
    PRIORITIES.iter().find(|(name, _)| *name == group).map_or(LEAST, |(_, priority)| *priority)
}

/// Returns the position of a group: built-in groups by the API server's priority, then groups of custom resources by name.
fn rank(group: &str, builtin: bool) -> usize {
    PRIORITIES.iter().position(|(name, _)| builtin && *name == group).unwrap_or(PRIORITIES.len())
}

/// Returns all groups of the table in the order of discovery.
#[must_use]
pub(crate) fn groups(rows: &[Arc<ResourceInfo>]) -> Vec<Group<'_>> {
    let mut by_group: BTreeMap<(usize, &str), BTreeMap<&str, Vec<&ResourceInfo>>> = BTreeMap::new();
    for row in rows {
        by_group
            .entry((rank(&row.group, row.builtin), &row.group))
            .or_default()
            .entry(&row.version)
            .or_default()
            .push(row);
    }
    by_group
        .into_iter()
        .map(|((_, name), versions)| {
            let mut versions: Vec<_> = versions.into_iter().collect();
            versions.sort_by(|(left, _), (right, _)| compare_versions(left, right));
            for (_, rows) in &mut versions {
                rows.sort_by(|left, right| left.plural.cmp(&right.plural));
            }
            Group { name, versions }
        })
        .collect()
}

/// Orders versions: stable before beta before alpha, higher numbers first; names that are not Kubernetes versions last, by name.
pub(crate) fn compare_versions(left: &str, right: &str) -> Ordering {
    match (kube_version(left), kube_version(right)) {
        (Some(left), Some(right)) => Reverse(left).cmp(&Reverse(right)),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => left.cmp(right),
    }
}

/// Parses `v2beta3` as (stability, major, minor); greater values are preferred.
fn kube_version(version: &str) -> Option<(u8, u64, u64)> {
    let digits = version.strip_prefix('v')?;
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let (major, rest) = digits.split_at_checked(end)?;
    let major = major.parse().ok()?;
    if rest.is_empty() {
        return Some((2, major, 0));
    }
    let (stability, minor) = match (rest.strip_prefix("beta"), rest.strip_prefix("alpha")) {
        (Some(minor), _) => (1, minor),
        (None, Some(minor)) => (0, minor),
        (None, None) => return None,
    };
    Some((stability, major, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stable_and_newest_version_is_preferred() {
        let mut versions = ["foo", "v1alpha1", "v2", "v1beta2", "v10", "v1beta1", "bar", "v1"];
        versions.sort_by(|left, right| compare_versions(left, right));
        assert_eq!(versions, ["v10", "v2", "v1", "v1beta2", "v1beta1", "v1alpha1", "bar", "foo"]);
    }
}
