//! Generates the page "CEL in Kubernetes by release" from the rows and facts.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use admit_cel::{Overload, Version, build_changes, overloads};

use super::boundaries::offered_from;
use super::facts::{FACTS, Subject, UNKNOWN, Unknown};
use super::{FIRST, LAST, Release};

/// The page as Markdown.
#[must_use]
pub fn page() -> String {
    let mut page = String::from(
        "# CEL in Kubernetes by release\n\n\
         Made by `admit_analysis::releases::page` from the rows that the engine runs on; a test compares it.\n\n\
         A server takes in what is new only what the release before it has, so that going back to that one finds nothing that it does \
         not know: a library that came with compatibility version 1.30 may be written from 1.31 on. What is stored may use all that \
         the server has.\n",
    );
    functions(&mut page);
    builds(&mut page);
    facts(&mut page);
    page.push_str("\n## What is not known, or not followed\n\n| releases | what |\n|---|---|\n");
    for Unknown { from, to, what } in UNKNOWN {
        let releases = if from == to { from.to_string() } else { format!("{from} to {to}") };
        line(&mut page, format_args!("| {releases} | {what} |"));
    }
    page
}

fn line(page: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(page, "{arguments}");
}

/// Writes the functions by the first release that offers them to new expressions.
fn functions(page: &mut String) {
    let mut by_release: BTreeMap<Release, Vec<&'static Overload>> = BTreeMap::new();
    for row in overloads() {
        by_release.entry(offered_from(row).max(FIRST)).or_default().push(row);
    }
    page.push_str(
        "\n## Functions\n\nFrom kubernetes/apiserver `pkg/cel/environment/base.go` of each release; `tests/analysis/data/overloads.tsv` has \
         the file of each overload.\n\n| from | stored from | functions |\n|---|---|---|\n",
    );
    for (release, rows) in by_release {
        let first = if release == FIRST { format!("{FIRST} or before") } else { release.to_string() };
        let mut by_store: BTreeMap<Release, Vec<String>> = BTreeMap::new();
        for row in rows {
            let stored = Release(row.since).max(build_of(row)).max(FIRST);
            by_store.entry(stored).or_default().push(format!("`{}`", name_of(row)));
        }
        for (stored, mut names) in by_store {
            names.sort_unstable();
            names.dedup();
            let stored = if stored == FIRST { format!("{FIRST} or before") } else { stored.to_string() };
            line(page, format_args!("| {first} | {stored} | {} |", names.join(", ")));
        }
    }
}

/// The first build that has a row.
fn build_of(row: &Overload) -> Release {
    let absent = build_changes().filter(|change| change.absent && change.from.is_none());
    let until = absent.filter(|change| change.overloads.contains(&row.id)).filter_map(|change| change.until);
    until.map(Release).max().unwrap_or(Release(Version(1, 0)))
}

/// Returns the signature without its result: overloads with one name and receiver differ only in their arguments.
fn name_of(row: &Overload) -> &'static str {
    row.signature.split(" -> ").next().unwrap_or(row.signature)
}

fn builds(page: &mut String) {
    page.push_str(
        "\n## Builds that differ\n\nCosts below are those of 1.36 but for these.\n\n| releases | overloads | what | read from |\n|---|---|---|---|\n",
    );
    for change in build_changes() {
        let releases = match (change.from, change.until) {
            (None, Some(until)) => format!("before {}", Release(until)),
            (Some(from), None) => format!("from {}", Release(from)),
            (Some(from), Some(until)) => format!("from {}, before {}", Release(from), Release(until)),
            (None, None) => format!("{FIRST} to {LAST}"),
        };
        let names: Vec<String> = change.overloads.iter().map(|id| format!("`{id}`")).collect();
        let what = if change.absent { "not there" } else { "other costs" };
        line(page, format_args!("| {releases} | {} | {what} | {} |", names.join(", "), change.source));
    }
}

fn facts(page: &mut String) {
    let parts = [
        (Subject::Kind, "Kinds", "A server before answers `no matches for kind`."),
        (Subject::Field, "Fields of definitions", "A server before drops them without a word."),
        (Subject::Format, "Formats", "A server before does not check them."),
        (Subject::Behaviour, "What else changed", "As servers are installed, without feature gates set."),
    ];
    for (subject, title, about) in parts {
        line(
            page,
            format_args!(
                "\n## {title}\n\n{about}\n\n| from | what | beside | read from |\n|---|---|---|---|"
            ),
        );
        for fact in FACTS.iter().filter(|fact| fact.subject == subject) {
            let name = match subject {
                Subject::Behaviour => fact.name.to_owned(),
                Subject::Kind | Subject::Field | Subject::Format => format!("`{}`", fact.name),
            };
            line(page, format_args!("| {} | {name} | {} | {} |", fact.from, fact.note, fact.source));
        }
    }
}
