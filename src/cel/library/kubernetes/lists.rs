//! Implements `isSorted`, `sum`, `min`, `max`, `indexOf`, `lastIndexOf`, `includes` over lists.

use std::cmp::Ordering;

use crate::cost::{CallEstimate, Operand};
use crate::library::{Overload, Version, cost, mismatch};
use crate::types::Type;
use crate::value::{Duration, EvalError, List, Value};

/// The rows of one function for every type with an order.
macro_rules! for_ordered_types {
    ($row:ident) => {
        &[
            $row!("int"),
            $row!("uint"),
            $row!("double"),
            $row!("bool"),
            $row!("duration"),
            $row!("timestamp"),
            $row!("string"),
            $row!("bytes"),
        ]
    };
}

macro_rules! is_sorted {
    ($type:literal) => {
        Overload::new(
            concat!("list_", $type, "_is_sorted_bool"),
            concat!("list(", $type, ").isSorted() -> bool"),
            |_, args| on_list(args, is_sorted),
            "Whether no item is less than the one before it.",
        )
        .costs_by_name(cost::estimate_scan, cost::scan)
    };
}

macro_rules! max {
    ($type:literal) => {
        Overload::new(
            concat!("list_", $type, "_max_", $type),
            concat!("list(", $type, ").max() -> ", $type),
            |_, args| on_list(args, |list| extreme(list, "max", Ordering::Less)),
            "The greatest item; an error for an empty list.",
        )
        .costs_by_name(cost::estimate_scan, cost::scan)
    };
}

macro_rules! min {
    ($type:literal) => {
        Overload::new(
            concat!("list_", $type, "_min_", $type),
            concat!("list(", $type, ").min() -> ", $type),
            |_, args| on_list(args, |list| extreme(list, "min", Ordering::Greater)),
            "The least item; an error for an empty list.",
        )
        .costs_by_name(cost::estimate_scan, cost::scan)
    };
}

macro_rules! sum {
    ($type:literal, $zero:expr) => {
        Overload::new(
            concat!("list_", $type, "_sum_", $type),
            concat!("list(", $type, ").sum() -> ", $type),
            |_, args| on_list(args, |list| sum(list, $zero)),
            "The sum of the items.",
        )
        .costs_by_name(cost::estimate_scan, cost::scan)
    };
}

pub(super) const IS_SORTED: &[Overload] = for_ordered_types!(is_sorted);
pub(super) const MAX: &[Overload] = for_ordered_types!(max);
pub(super) const MIN: &[Overload] = for_ordered_types!(min);
pub(super) const SUM: &[Overload] = &[
    sum!("int", Value::Int(0)),
    sum!("uint", Value::Uint(0)),
    sum!("double", Value::Double(0.0)),
    sum!("duration", Value::Duration(Duration(0))),
];
pub(super) const INDEX_OF: &[Overload] = &[
    Overload::new(
        "list_a_index_of_int",
        "list(A).indexOf(A) -> int",
        |_, args| match args {
            [Value::List(list), item] => Ok(position(list.iter().position(|other| other.equals(item)))),
            _ => mismatch(),
        },
        "The position of the first item that equals a value, or -1.",
    )
    .costs_by_name(cost::estimate_scan, cost::scan),
    Overload::new(
        "list_a_last_index_of_int",
        "list(A).lastIndexOf(A) -> int",
        |_, args| match args {
            [Value::List(list), item] => {
                let equals = |index: &usize| list.get(*index).is_some_and(|other| other.equals(item));
                Ok(position((0..list.len()).rev().find(equals)))
            }
            _ => mismatch(),
        },
        "The position of the last item that equals a value, or -1.",
    )
    .costs_by_name(cost::estimate_scan, cost::scan),
];

pub(super) const INCLUDES: &[Overload] = &[Overload::new(
    "list_includes_dyn_dyn",
    "dyn.includes(dyn) -> bool",
    |_, args| match args {
        [Value::List(list), item] => Ok(Value::Bool(list.iter().any(|other| other.equals(item)))),
        [value, item] => Ok(Value::Bool(value.equals(item))),
        _ => mismatch(),
    },
    "Whether a list has an item, or any other value equals it.",
)
.costs_by_name(estimate_includes, cost::scan)
.since(Version(1, 37))];

/// What is no list by its declared type may be one all the same: at worst each of its items is compared.
fn estimate_includes(args: &[Operand<'_>]) -> CallEstimate {
    match args.first() {
        Some(operand) if !matches!(operand.ty, Type::List(_) | Type::Map(..) | Type::Optional(_)) => {
            CallEstimate::of_cost(operand.size_or_unbounded())
        }
        _ => cost::estimate_scan(args),
    }
}

fn on_list<'a>(
    args: &[Value<'a>],
    body: fn(List<'a>) -> Result<Value<'a>, EvalError>,
) -> Result<Value<'a>, EvalError> {
    match args {
        [Value::List(list)] => body(*list),
        _ => mismatch(),
    }
}

fn position<'a>(index: Option<usize>) -> Value<'a> {
    Value::Int(index.and_then(|index| i64::try_from(index).ok()).unwrap_or(-1))
}

/// Items without an order between them (NaN) do not break the order.
fn is_sorted(list: List<'_>) -> Result<Value<'_>, EvalError> {
    let mut previous: Option<Value<'_>> = None;
    for item in list.iter() {
        let greater = previous.is_some_and(|previous| previous.compare(&item) == Ok(Ordering::Greater));
        if greater {
            return Ok(Value::Bool(false));
        }
        comparable(&item)?;
        previous = Some(item);
    }
    Ok(Value::Bool(true))
}

/// The item that no later one beats: a later one wins if the best so far compares to it as `losing`.
fn extreme<'a>(list: List<'a>, name: &str, losing: Ordering) -> Result<Value<'a>, EvalError> {
    let mut best: Option<Value<'a>> = None;
    for item in list.iter() {
        comparable(&item)?;
        let wins = best.is_none_or(|best| best.compare(&item) == Ok(losing));
        if wins {
            best = Some(item);
        }
    }
    best.ok_or_else(|| EvalError::other(format!("{name} called on empty list")))
}

fn comparable(item: &Value<'_>) -> Result<(), EvalError> {
    match item.compare(item) {
        Err(EvalError::NoSuchOverload) => Err(EvalError::NoSuchOverload),
        _ => Ok(()),
    }
}

fn sum<'a>(list: List<'a>, zero: Value<'a>) -> Result<Value<'a>, EvalError> {
    list.iter().try_fold(zero, |sum, item| match (sum, item) {
        (Value::Int(x), Value::Int(y)) => x.checked_add(y).map(Value::Int).ok_or(EvalError::IntegerOverflow),
        (Value::Uint(x), Value::Uint(y)) => {
            x.checked_add(y).map(Value::Uint).ok_or(EvalError::UnsignedOverflow)
        }
        (Value::Double(x), Value::Double(y)) => Ok(Value::Double(x + y)),
        (Value::Duration(x), Value::Duration(y)) => {
            x.0.checked_add(y.0).map(|sum| Value::Duration(Duration(sum))).ok_or(EvalError::IntegerOverflow)
        }
        _ => Err(EvalError::NoSuchOverload),
    })
}
