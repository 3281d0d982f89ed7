//! Formats expressions for the page: their text with the parts that were not reached, their cost, and the value of every part.

use std::collections::HashMap;

use admit_cel::Coverage;
use admit_policy::{Expression, ExpressionId, Origin, Purse, Recorded, Spent};
use indexmap::IndexMap;

use super::answer::{Budget, Place, Shown};
use crate::cli::render::coverage::{self, Covered};
use crate::cli::render::explain;

/// Formats all `expressions` with what was `recorded` of them, and a sentence about how much was reached. `of` returns the owner
/// and the position of an expression.
pub(super) fn all<'e>(
    expressions: impl IntoIterator<Item = Expression<'e>>,
    recorded: &IndexMap<ExpressionId, Recorded>,
    of: impl Fn(&ExpressionId) -> (String, Option<Place>),
) -> (Vec<Shown>, String) {
    let order: HashMap<&ExpressionId, usize> = recorded.keys().enumerate().map(|(at, id)| (id, at)).collect();
    let mut expressions: Vec<Expression<'e>> = expressions.into_iter().collect();
    // In the order of evaluation, then those that were not evaluated.
    expressions.sort_by_key(|expression| order.get(&expression.id).copied().unwrap_or(usize::MAX));
    let (mut shown, mut covered) = (Vec::new(), Vec::new());
    for Expression { id, text, program } in expressions {
        let done = recorded.get(&id);
        let unreached = Coverage::new(program);
        let branches = done.map_or(&unreached, |done| &done.coverage).branches();
        let one = covered_of(&id.path, text, done, branches.map(|(branch, hit)| (*branch, hit)).collect());
        let (of, place) = of(&id);
        shown.push(one_of(of, &id.path, place, &one, done));
        covered.push(one);
    }
    (shown, coverage::of_expressions(&covered))
}

/// Formats the cost of expressions that share a limit. `of` names their owner.
pub(super) fn budgets(spent: Vec<Spent>, of: impl Fn(&Origin) -> String) -> Vec<Budget> {
    let budget = |Spent { origin, purse, cost, limit, exceeded }| {
        let what = match (purse, &origin) {
            (Purse::Conditions, _) => "match conditions",
            (Purse::Annotations, _) => "audit annotations",
            (Purse::Rules, Origin::Mutating { .. }) => "the costliest mutation",
            (Purse::Rules, Origin::Definition { .. }) => "all rules",
            (Purse::Rules, Origin::Policy { .. } | Origin::Configuration { .. }) => {
                "validations and messages"
            }
        };
        let whose = of(&origin);
        let colon = if whose.is_empty() { "" } else { ": " };
        let percent = coverage::of_limit(cost, limit);
        Budget { of: format!("{whose}{colon}{what}"), cost, limit, percent, exceeded }
    };
    spent.into_iter().map(budget).collect()
}

/// Formats one expression that belongs to no document.
pub(super) fn alone(pane: &str, recorded: &Recorded) -> (Vec<Shown>, String) {
    let branches = recorded.coverage.branches().map(|(branch, hit)| (*branch, hit)).collect();
    let covered = covered_of("", &recorded.text, Some(recorded), branches);
    let place = Place { field: pane.to_owned(), line: 1, column: 1 };
    let shown = one_of(String::new(), "", Some(place), &covered, Some(recorded));
    (vec![shown], coverage::of_expressions(&[covered]))
}

fn covered_of(
    path: &str,
    text: &str,
    done: Option<&Recorded>,
    branches: Vec<(admit_cel::Branch, bool)>,
) -> Covered {
    Covered {
        file: String::new(),
        line: 1,
        path: path.to_owned(),
        text: text.to_owned(),
        evaluations: done.map_or(0, |done| done.evaluations),
        cost: done.map_or(0, |done| done.cost),
        branches,
    }
}

fn one_of(of: String, path: &str, place: Option<Place>, covered: &Covered, done: Option<&Recorded>) -> Shown {
    Shown {
        of,
        path: path.to_owned(),
        place,
        coverage: coverage::expression(covered),
        traces: done.map(explain::evaluations).unwrap_or_default(),
    }
}
