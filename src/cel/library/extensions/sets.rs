//! Implements lists as sets.

use bumpalo::Bump;

use crate::cost::{Bounds, CallEstimate, Operand};
use crate::library::{Context, Overload, Version, cost, mismatch};
use crate::value::{EvalError, List, Value};

const SINCE: Version = Version(1, 29);

pub(super) const ROWS: &[Overload] = &[
    Overload::new(
        "list_sets_contains_list",
        "sets.contains(list(T), list(T)) -> bool",
        |context, args| judge(context, args, 1, contains),
        "Whether the first list has every item of the second.",
    )
    .costs(|args| estimate(args, 1.0), |args, _| charge(args, 1))
    .since(SINCE),
    Overload::new(
        "list_sets_equivalent_list",
        "sets.equivalent(list(T), list(T)) -> bool",
        |context, args| {
            judge(context, args, 2, |arena, x, y| Ok(contains(arena, x, y)? && contains(arena, y, x)?))
        },
        "Whether each list has every item of the other.",
    )
    .costs(|args| estimate(args, 2.0), |args, _| charge(args, 2))
    .since(SINCE),
    Overload::new(
        "list_sets_intersects_list",
        "sets.intersects(list(T), list(T)) -> bool",
        |context, args| judge(context, args, 1, intersects),
        "Whether two lists have an item in common.",
    )
    .costs(|args| estimate(args, 1.0), |args, _| charge(args, 1))
    .since(SINCE),
];

type Relation = for<'a> fn(&'a Bump, List<'a>, List<'a>) -> Result<bool, EvalError>;

fn judge<'a>(
    context: &Context<'a>,
    args: &[Value<'a>],
    rounds: u64,
    relation: Relation,
) -> Result<Value<'a>, EvalError> {
    let [Value::List(x), Value::List(y)] = args else { return mismatch() };
    cost::affordable(charge(args, rounds))?;
    relation(context.arena, *x, *y).map(Value::Bool)
}

/// The first item that the list lacks, or cannot be asked about, decides.
fn contains<'a>(arena: &'a Bump, list: List<'a>, part: List<'a>) -> Result<bool, EvalError> {
    for at in 0..part.len() {
        let Some(item) = part.try_get(arena, at)? else { break };
        if !list.holds(arena, &item)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Items that cannot be compared are not common ones.
fn intersects<'a>(arena: &'a Bump, list: List<'a>, other: List<'a>) -> Result<bool, EvalError> {
    for at in 0..list.len() {
        let found = match list.try_get(arena, at) {
            Ok(Some(item)) => other.holds(arena, &item),
            Ok(None) => break,
            Err(error) => Err(error),
        };
        match found {
            Ok(true) => return Ok(true),
            Err(error) if error.is_final() => return Err(error),
            Ok(false) | Err(_) => {}
        }
    }
    Ok(false)
}

fn charge(args: &[Value<'_>], rounds: u64) -> u64 {
    let pairs = cost::size_of(args, 0).saturating_mul(cost::size_of(args, 1));
    pairs.saturating_mul(rounds).saturating_add(1)
}

fn estimate(args: &[Operand<'_>], rounds: f64) -> CallEstimate {
    let pairs = cost::bounds_of(args, 0).times(cost::bounds_of(args, 1));
    CallEstimate::of_cost(pairs.scaled(rounds).plus(Bounds::ONE))
}
