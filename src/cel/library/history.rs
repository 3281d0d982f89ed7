//! Lists differences between releases: a row describes the release that this engine follows, and each [`Change`] the kube-apiserver
//! builds that differ from it, with the source file.
//!
//! A row's `since` is a compatibility version: environments of that version offer it. A build that lacks the function offers it at no
//! version; that is [`Changed::Absent`].

use std::collections::HashMap;
use std::sync::LazyLock;

use super::{Cost, Estimate, Overload, Version, cost, extensions, kubernetes, overloads};

/// What one overload is in some builds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Changed {
    /// The build does not have it.
    Absent,
    /// It costs this: estimated, counted, and counted where the checker left the overload open.
    Costs(Estimate, Cost, Cost),
}

/// A difference of the builds of some releases.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    /// The overloads, by their ids.
    pub ids: &'static [&'static str],
    /// The first of these releases; none for all before `until`.
    pub from: Option<Version>,
    /// The first release after them; none for all from `from` on.
    pub until: Option<Version>,
    /// What they are there.
    pub what: Changed,
    /// The source file.
    pub source: &'static str,
}

const ONE: Changed = Changed::Costs(cost::estimate_one, cost::one, cost::one);

pub(crate) const CHANGES: &[Change] = &[
    Change {
        ids: &["list_first", "list_last", "optional_unwrap", "optional_unwrapOpt"],
        from: None,
        until: Some(Version(1, 33)),
        what: Changed::Absent,
        source: "cel-go v0.22.0 cel/library.go has version 1 of the optional library, v0.23.2 version 2; kubernetes/apiserver v0.32.13, v0.33.13 go.mod",
    },
    Change {
        ids: &["int64_to_duration"],
        from: Some(Version(1, 37)),
        until: None,
        what: Changed::Absent,
        source: "cel-go v0.29.2 common/stdlib/standard.go; kubernetes/apiserver cbd312881 go.mod",
    },
    Change {
        ids: &["string_to_quantity", "is_quantity_string"],
        from: None,
        until: Some(Version(1, 30)),
        what: ONE,
        source: "kubernetes/apiserver v0.29.15, v0.30.14 pkg/cel/library/cost.go",
    },
    Change {
        ids: &["equals"],
        from: None,
        until: Some(Version(1, 32)),
        what: Changed::Costs(cost::estimate_compare, cost::compare, cost::compare),
        source: "kubernetes/apiserver v0.31.14, v0.32.13 pkg/cel/library/cost.go",
    },
    Change {
        ids: &["string_to_url"],
        from: None,
        until: Some(Version(1, 32)),
        what: Changed::Costs(cost::estimate_traverse_first, cost::traverse_first, cost::traverse_first),
        source: "kubernetes/apiserver v0.31.14, v0.32.13 pkg/cel/library/cost.go",
    },
    Change {
        ids: &["starts_with_string", "ends_with_string"],
        from: Some(Version(1, 37)),
        until: None,
        what: Changed::Costs(cost::estimate_traverse_second, cost::traverse_second, cost::one),
        source: "cel-go v0.29.2 interpreter/runtimecost.go",
    },
    Change {
        ids: &["matches"],
        from: Some(Version(1, 37)),
        until: None,
        what: Changed::Costs(cost::estimate_match_regex, cost::match_regex, cost::one),
        source: "cel-go v0.29.2 checker/cost.go, interpreter/runtimecost.go",
    },
];

impl Change {
    fn is_of(&self, release: Version) -> bool {
        self.from.is_none_or(|from| from <= release) && self.until.is_none_or(|until| release < until)
    }
}

/// What the build of a release has in the place of a row; none if it does not have it.
pub(crate) fn in_build(row: &'static Overload, release: Version) -> Option<&'static Overload> {
    let change = CHANGES.iter().position(|change| change.is_of(release) && change.ids.contains(&row.id));
    match change {
        None => Some(row),
        Some(change) => CHANGED.get(&(change, row.id)),
    }
}

/// The changed rows, by the change and their id.
static CHANGED: LazyLock<HashMap<(usize, &'static str), Overload>> = LazyLock::new(|| {
    let mut changed = HashMap::new();
    for row in overloads() {
        for (index, change) in CHANGES.iter().enumerate().filter(|(_, change)| change.ids.contains(&row.id)) {
            if let Changed::Costs(estimate, cost, dynamic_cost) = change.what {
                changed.insert((index, row.id), Overload { estimate, cost, dynamic_cost, ..*row });
            }
        }
    }
    changed
});

/// Returns the row without Kubernetes' own costs (`CostTracking` without an estimator): a call of one of its libraries, or of cel-go's
/// strings, costs one.
pub(crate) fn without_books(row: &'static Overload) -> &'static Overload {
    WITHOUT_BOOKS.get(row.id).unwrap_or(row)
}

static WITHOUT_BOOKS: LazyLock<HashMap<&'static str, Overload>> = LazyLock::new(|| {
    let rows = kubernetes::TABLES.iter().copied().flatten().chain(extensions::COUNTED_BY_KUBERNETES);
    // cel-go counts this one itself.
    let rows = rows.filter(|row| row.id != "strings_quote");
    rows.map(|row| (row.id, Overload { cost: cost::one, dynamic_cost: cost::one, ..*row })).collect()
});

/// How the static estimate walks a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Walk {
    /// Up to cel-go 0.22 (`checker/cost.go`): variables of comprehensions have a path and no size, literals have no item sizes, `dyn`
    /// is a call like any other. `sizes`: whether the size of a comprehension is that of its range, as from 0.17.8 on.
    Early { sizes: bool },
    /// From cel-go 0.23 on.
    Current,
}

/// The walk of a release: 1.29 builds with cel-go 0.17.7, 1.30 with 0.17.8, 1.32 with 0.22.0, 1.33 with 0.23.2
/// (kubernetes/apiserver go.mod of each).
pub(crate) const fn walk(release: Version) -> Walk {
    match release {
        Version(1, ..30) => Walk::Early { sizes: false },
        Version(1, 30..33) => Walk::Early { sizes: true },
        _ => Walk::Current,
    }
}

/// How the build of a release differs from the rows of [`overloads`](crate::overloads), with the source file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuildChange {
    /// The overloads, by their ids.
    pub overloads: &'static [&'static str],
    /// The first of the releases that differ; none for all before `until`.
    pub from: Option<Version>,
    /// The first release after them; none for all from `from` on.
    pub until: Option<Version>,
    /// Whether the overloads do not exist; otherwise they have other costs.
    pub absent: bool,
    /// The source files, with their tags.
    pub source: &'static str,
}

/// Returns all known differences.
///
/// ```
/// use admit_cel::{Version, build_changes};
///
/// let change = build_changes().find(|change| change.overloads.contains(&"list_first")).unwrap();
/// assert!(change.absent && (change.from, change.until) == (None, Some(Version(1, 33))));
/// ```
pub fn build_changes() -> impl Iterator<Item = BuildChange> {
    CHANGES.iter().map(|change| BuildChange {
        overloads: change.ids,
        from: change.from,
        until: change.until,
        absent: matches!(change.what, Changed::Absent),
        source: change.source,
    })
}
