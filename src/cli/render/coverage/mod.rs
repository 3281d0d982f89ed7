//! Reports test coverage: which expressions the suites evaluated, and which of their branches. This module has the data, and
//! there is one renderer for each format.
//!
//! | drawing | for |
//! |---|---|
//! | `text` | people: what is missing, underlined |
//! | `lcov` | editors and services that show coverage beside the source |
//! | `json` | a page that draws one expression: its parts, what did not happen to each, and its cost beside the limit |
//! | `html` | a page of its own: shares and costs as bars, what no case did marked in the expressions |

mod html;
mod json;
mod lcov;
mod marks;
mod text;

use admit_cel::{Branch, BranchKind, Source};

pub(in crate::cli) use self::html::html;
pub(in crate::cli) use self::json::{expression, of_expressions};
pub(in crate::cli) use self::lcov::lcov;
pub(in crate::cli) use self::text::text;

/// All expressions under test, in order of file and line.
#[derive(Debug)]
pub(in crate::cli) struct CoverageReport {
    pub(in crate::cli) expressions: Vec<Covered>,
}

/// The coverage of one expression.
#[derive(Clone, Debug)]
pub(in crate::cli) struct Covered {
    pub(in crate::cli) file: String,
    /// The line of the expression's field.
    pub(in crate::cli) line: usize,
    /// The path in its document.
    pub(in crate::cli) path: String,
    pub(in crate::cli) text: String,
    pub(in crate::cli) evaluations: u64,
    /// The cost of the costliest evaluation, in CEL's units.
    pub(in crate::cli) cost: u64,
    /// Each branch, and whether it was taken.
    pub(in crate::cli) branches: Vec<(Branch, bool)>,
}

/// A count out of a total.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    hit: usize,
    all: usize,
}

impl CoverageReport {
    /// Returns the expressions of each file.
    fn files(&self) -> impl Iterator<Item = &[Covered]> {
        self.expressions.chunk_by(|left, right| left.file == right.file)
    }
}

impl Share {
    fn of_expressions(expressions: &[Covered]) -> Self {
        let hit = expressions.iter().filter(|expression| expression.evaluations > 0).count();
        Self { hit, all: expressions.len() }
    }

    fn of_branches(expressions: &[Covered]) -> Self {
        let branches = || expressions.iter().flat_map(|expression| &expression.branches);
        Self { hit: branches().filter(|(_, hit)| *hit).count(), all: branches().count() }
    }

    /// Returns the percentage; 100 if the total is 0.
    fn percent(self) -> f64 {
        let part = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
        if self.all == 0 { 100.0 } else { 100.0 * part(self.hit) / part(self.all) }
    }
}

/// Returns a summary such as `12 of 14 expressions, 40 of 52 branches (76.9 %)`.
fn summary(expressions: &[Covered]) -> String {
    let (reached, taken) = (Share::of_expressions(expressions), Share::of_branches(expressions));
    format!(
        "{} of {} expressions, {} of {} branches ({:.1} %)",
        reached.hit,
        reached.all,
        taken.hit,
        taken.all,
        taken.percent()
    )
}

/// Returns a line for each missed outcome: `1:14 term never false: object.x > 1`, with the part's position in the expression.
fn missed(expression: &Covered) -> Vec<String> {
    if expression.evaluations == 0 {
        return vec!["never evaluated".to_owned()];
    }
    let line = |branch: &Branch| {
        let place = Source::new(&expression.text).position(branch.span.start);
        let part: Vec<&str> = branch.span.in_parentheses(&expression.text).split_whitespace().collect();
        format!("{}:{} {}: {}", place.line, place.column, missing(branch), part.join(" "))
    };
    expression.branches.iter().filter(|(_, hit)| !hit).map(|(branch, _)| line(branch)).collect()
}

/// Returns a cost as a percentage of a limit on a logarithmic scale.
pub(in crate::cli) fn of_limit(cost: u64, limit: u64) -> f64 {
    let digits = |cost: u64| f64::from(u32::try_from(cost).unwrap_or(u32::MAX)).ln_1p();
    (100.0 * digits(cost) / digits(limit)).min(100.0)
}

/// Returns the missed outcome as a phrase.
fn missing(branch: &Branch) -> &'static str {
    match (branch.kind, branch.when) {
        (BranchKind::Result, Some(true)) => "never true",
        (BranchKind::Result, _) => "never false",
        (BranchKind::And | BranchKind::Or, Some(true)) => "term never true",
        (BranchKind::And | BranchKind::Or, _) => "term never false",
        (BranchKind::Then | BranchKind::Else, _) => "alternative never chosen",
        (BranchKind::Predicate, Some(true)) => "condition never true for an item",
        (BranchKind::Predicate, _) => "condition never false for an item",
        (BranchKind::Body, _) => "never applied to an item",
        (BranchKind::Fallback, _) => "fallback never used",
    }
}
