//! Implements lists as sets.

use crate::cost::{Bounds, CallEstimate, Operand};
use crate::library::{Overload, Version, cost, mismatch};
use crate::value::{EvalError, List, Value};

const SINCE: Version = Version(1, 29);

pub(super) const ROWS: &[Overload] = &[
    Overload::new(
        "list_sets_contains_list",
        "sets.contains(list(T), list(T)) -> bool",
        |_, args| judge(args, 1, contains),
        "Whether the first list has every item of the second.",
    )
    .costs(|args| estimate(args, 1.0), |args, _| charge(args, 1))
    .since(SINCE),
    Overload::new(
        "list_sets_equivalent_list",
        "sets.equivalent(list(T), list(T)) -> bool",
        |_, args| judge(args, 2, |x, y| contains(x, y) && contains(y, x)),
        "Whether each list has every item of the other.",
    )
    .costs(|args| estimate(args, 2.0), |args, _| charge(args, 2))
    .since(SINCE),
    Overload::new(
        "list_sets_intersects_list",
        "sets.intersects(list(T), list(T)) -> bool",
        |_, args| judge(args, 1, |x, y| x.iter().any(|item| has(y, &item))),
        "Whether two lists have an item in common.",
    )
    .costs(|args| estimate(args, 1.0), |args, _| charge(args, 1))
    .since(SINCE),
];

fn judge<'a>(
    args: &[Value<'a>],
    rounds: u64,
    relation: fn(List<'_>, List<'_>) -> bool,
) -> Result<Value<'a>, EvalError> {
    let [Value::List(x), Value::List(y)] = args else { return mismatch() };
    cost::affordable(charge(args, rounds))?;
    Ok(Value::Bool(relation(*x, *y)))
}

fn contains(list: List<'_>, part: List<'_>) -> bool {
    part.iter().all(|item| has(list, &item))
}

fn has(list: List<'_>, item: &Value<'_>) -> bool {
    list.iter().any(|other| other.equals(item))
}

fn charge(args: &[Value<'_>], rounds: u64) -> u64 {
    let pairs = cost::size_of(args, 0).saturating_mul(cost::size_of(args, 1));
    pairs.saturating_mul(rounds).saturating_add(1)
}

fn estimate(args: &[Operand<'_>], rounds: f64) -> CallEstimate {
    let pairs = cost::bounds_of(args, 0).times(cost::bounds_of(args, 1));
    CallEstimate::of_cost(pairs.scaled(rounds).plus(Bounds::ONE))
}
