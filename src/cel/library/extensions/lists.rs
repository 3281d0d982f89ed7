//! Implements cel-go's list library, version 3. Costs include the created list.

use std::cmp::Ordering;

use crate::cost::{Bounds, CallEstimate, Operand, STRING_TRAVERSAL};
use crate::library::{Context, Overload, Version, cost, mismatch};
use crate::value::{EvalError, List, Value, runtime_type};

const SINCE: Version = Version(1, 34);

pub(super) const ROWS: &[Overload] = &[
    Overload::new(
        "list_slice",
        "list(T).slice(int, int) -> list(T)",
        slice,
        "The items from one position to before another.",
    )
    .costs(estimate_slice, charge_result)
    .since(SINCE),
    Overload::new(
        "list_flatten",
        "list(list(T)).flatten() -> list(T)",
        flatten_call,
        "The items of the lists in a list.",
    )
    .costs(estimate_flatten, charge_flatten)
    .since(SINCE),
    Overload::new(
        "list_flatten_int",
        "list(dyn).flatten(int) -> list(dyn)",
        flatten_call,
        "The items of the lists in a list, and in those, so many levels deep.",
    )
    .costs(estimate_flatten, charge_flatten)
    .since(SINCE),
    Overload::new(
        "lists_range",
        "lists.range(int) -> list(int)",
        range,
        "The integers from 0 to before a number.",
    )
    .costs(|args| estimate_list(1.0, Bounds::exactly(literal(args, 0, u64::MAX))), charge_result)
    .since(SINCE),
    Overload::new("list_reverse", "list(T).reverse() -> list(T)", reverse, "The items from last to first.")
        .costs(|args| estimate_list(1.0, cost::bounds_of(args, 0)), charge_result)
        .since(SINCE),
    Overload::new(
        "list_distinct",
        "list(T).distinct() -> list(T)",
        distinct,
        "The first of each group of equal items.",
    )
    .costs(|args| estimate_pairs(2.0, cost::bounds_of(args, 0)), |args, _| charge_pairs(args.first()))
    .since(SINCE),
];

/// The rows of one function for every type with an order; the id has the type's full name.
macro_rules! for_ordered_types {
    ($row:ident) => {
        &[
            $row!("int", "int"),
            $row!("uint", "uint"),
            $row!("double", "double"),
            $row!("bool", "bool"),
            $row!("google.protobuf.Duration", "duration"),
            $row!("google.protobuf.Timestamp", "timestamp"),
            $row!("string", "string"),
            $row!("bytes", "bytes"),
        ]
    };
}

macro_rules! sort_row {
    ($name:literal, $type:literal) => {
        Overload::new(
            concat!("list_", $name, "_sort"),
            concat!("list(", $type, ").sort() -> list(", $type, ")"),
            |context, args| match args {
                [Value::List(list)] => sort(context, *list, *list),
                _ => mismatch(),
            },
            concat!("The items in ascending order of ", $type, "."),
        )
        .costs(|args| estimate_sort(args, 0, $type), |args, _| charge_pairs(args.first()))
        .since(SINCE)
    };
}

macro_rules! sort_by_row {
    ($name:literal, $type:literal) => {
        Overload::new(
            concat!("list_", $name, "_sortByAssociatedKeys"),
            concat!("list(T).@sortByAssociatedKeys(list(", $type, ")) -> list(T)"),
            |context, args| match args {
                [Value::List(list), Value::List(keys)] => sort(context, *list, *keys),
                _ => mismatch(),
            },
            concat!(
                "The items in ascending order of their keys, each a ",
                $type,
                "; what `sortBy` expands to."
            ),
        )
        .costs(|args| estimate_sort(args, 1, $type), |args, _| charge_pairs(args.get(1)))
        .since(SINCE)
    };
}

pub(super) const SORT: &[Overload] = for_ordered_types!(sort_row);
pub(super) const SORT_BY: &[Overload] = for_ordered_types!(sort_by_row);

fn list_of<'a>(
    context: &Context<'a>,
    length: usize,
    items: impl Iterator<Item = Value<'a>>,
) -> Result<Value<'a>, EvalError> {
    context.slice(length, items).map(|items| Value::List(List::Values(items)))
}

fn slice<'a>(context: &Context<'a>, args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    let [Value::List(list), Value::Int(start), Value::Int(end)] = args else { return mismatch() };
    let length = list.len();
    let problem = match (usize::try_from(*start), usize::try_from(*end)) {
        (Ok(from), Ok(to)) if from > to => "start index must be less than or equal to end index".to_owned(),
        (Ok(_), Ok(to)) if to > length => format!("list is length {length}"),
        (Ok(from), Ok(to)) => {
            let count = to.saturating_sub(from);
            return list_of(context, count, (from..to).filter_map(|index| list.get(index)));
        }
        _ => "negative indexes not supported".to_owned(),
    };
    Err(EvalError::other(format!("cannot slice({start}, {end}), {problem}")))
}

/// Rejects a call at once if the cost of the result would exceed the limit of one call.
fn range<'a>(context: &Context<'a>, args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    let [Value::Int(end)] = args else { return mismatch() };
    let length = u64::try_from(*end).unwrap_or(0);
    cost::affordable(length)?;
    list_of(context, usize::try_from(length).unwrap_or(0), (0..*end).map(Value::Int))
}

fn reverse<'a>(context: &Context<'a>, args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    let [Value::List(list)] = args else { return mismatch() };
    list_of(context, list.len(), (0..list.len()).rev().filter_map(|index| list.get(index)))
}

fn distinct<'a>(context: &Context<'a>, args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    let [Value::List(list)] = args else { return mismatch() };
    cost::affordable(charge_pairs(args.first()))?;
    if list.is_empty() {
        // As it is, with its declared type.
        return Ok(Value::List(*list));
    }
    let mut unique: Vec<Value<'a>> = Vec::new();
    for item in list.iter() {
        if !unique.iter().any(|other| item.equals(other)) {
            unique.push(item);
        }
    }
    list_of(context, unique.len(), unique.into_iter())
}

fn flatten_call<'a>(context: &Context<'a>, args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    match args {
        [Value::List(list)] => flatten(context, *list, 1),
        [Value::List(list), Value::Int(depth)] => flatten(context, *list, *depth),
        [receiver, depth @ ..] => {
            let depth: Vec<_> = depth.iter().map(runtime_type::name_of).collect();
            let receiver = runtime_type::name_of(receiver);
            Err(EvalError::other(format!("no such overload: {receiver}.flatten({})", depth.join(", "))))
        }
        [] => mismatch(),
    }
}

fn flatten<'a>(context: &Context<'a>, list: List<'a>, depth: i64) -> Result<Value<'a>, EvalError> {
    if depth < 0 {
        return Err(EvalError::other("level must be non-negative"));
    }
    let mut items = Vec::new();
    // Lists that are being read, innermost last: a stack of our own, since data decides how deep it gets.
    let mut open: Vec<(List<'a>, usize)> = vec![(list, 0)];
    while let Some((list, next)) = open.pop() {
        let Some(item) = list.get(next) else { continue };
        open.push((list, next.saturating_add(1)));
        let level = i64::try_from(open.len()).unwrap_or(i64::MAX);
        match item {
            Value::List(inner) if level <= depth => open.push((inner, 0)),
            other => items.push(other),
        }
    }
    list_of(context, items.len(), items.into_iter())
}

/// `list` in the order of `keys`, ties in the order of the list.
fn sort<'a>(context: &Context<'a>, list: List<'a>, keys: List<'a>) -> Result<Value<'a>, EvalError> {
    if list.len() != keys.len() {
        return Err(EvalError::other(format!(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, \
             but got {} and {} elements respectively",
            list.len(),
            keys.len()
        )));
    }
    let Some(first) = keys.get(0) else { return Ok(Value::List(list)) };
    if first.compare(&first) == Err(EvalError::NoSuchOverload) {
        return Err(EvalError::other("list elements must be comparable"));
    }
    if keys.iter().any(|key| runtime_type::of(&key) != runtime_type::of(&first)) {
        return Err(EvalError::other("list elements must have the same type"));
    }
    let mut pairs: Vec<_> = keys.iter().zip(list.iter()).collect();
    // What has no order (NaN) counts as equal, as in cel-go.
    pairs.sort_by(|(x, _), (y, _)| x.compare(y).unwrap_or(Ordering::Equal));
    list_of(context, pairs.len(), pairs.into_iter().map(|(_, item)| item))
}

/// A call and the list that it makes.
const OVERHEAD: u64 = 1 + cost::LIST;

/// The product is cut, not rounded up; a negative depth wraps as the reference's conversion does.
#[expect(clippy::cast_possible_truncation, reason = "the reference's own conversions")]
fn charge(size: u64, factor: f64) -> u64 {
    let work = size as f64 * factor;
    let work = if work < 0.0 { (work as i64).cast_unsigned() } else { work as u64 };
    work.wrapping_add(OVERHEAD)
}

fn charge_result(_: &[Value<'_>], result: &Value<'_>) -> u64 {
    charge(cost::size(result), 1.0)
}

fn charge_flatten(args: &[Value<'_>], _: &Value<'_>) -> u64 {
    let depth = match args.get(1) {
        Some(Value::Int(depth)) => *depth as f64,
        _ => 1.0,
    };
    charge(cost::size_of(args, 0), depth)
}

/// Comparing every item with every other.
fn charge_pairs(list: Option<&Value<'_>>) -> u64 {
    let Some(Value::List(list)) = list else { return charge(1, 2.0) };
    let factor = match list.get(0) {
        Some(Value::String(_) | Value::Bytes(_)) => 2.0 + STRING_TRAVERSAL,
        _ => 2.0,
    };
    let size = cost::length(list.len());
    charge(size.saturating_mul(size), factor)
}

fn estimate_list(factor: f64, size: Bounds) -> CallEstimate {
    let cost = size.scaled(factor).plus(Bounds::ONE).plus(Bounds::exactly(cost::LIST));
    CallEstimate::with_result(cost, size)
}

fn estimate_pairs(factor: f64, size: Bounds) -> CallEstimate {
    estimate_list(factor, size.times(size))
}

fn estimate_slice(args: &[Operand<'_>]) -> CallEstimate {
    let start = literal(args, 1, 0);
    let end = literal(args, 2, cost::bounds_of(args, 0).max);
    estimate_list(1.0, Bounds::exactly(end.wrapping_sub(start)))
}

fn estimate_flatten(args: &[Operand<'_>]) -> CallEstimate {
    let depth = if args.len() > 1 { literal(args, 1, u64::MAX) } else { 1 };
    estimate_list(depth as f64, cost::bounds_of(args, 0))
}

/// Estimates a sort by the list of keys at index `keys`, whose items have this type.
fn estimate_sort(args: &[Operand<'_>], keys: usize, item_type: &str) -> CallEstimate {
    let factor = if matches!(item_type, "string" | "bytes") { 2.0 + STRING_TRAVERSAL } else { 2.0 };
    estimate_pairs(factor, cost::bounds_of(args, keys))
}

/// The value of an integer literal, zero for a negative one; `default` for anything else.
fn literal(args: &[Operand<'_>], index: usize, default: u64) -> u64 {
    let integer = args.get(index).and_then(Operand::integer);
    integer.map_or(default, |integer| u64::try_from(integer).unwrap_or(0))
}
