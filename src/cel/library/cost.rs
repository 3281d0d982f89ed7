//! Defines the cost functions that rows share: what a call costs in Kubernetes, estimated from sizes or counted from values.
//!
//! Sources: cel-go `checker/cost.go` and `interpreter/runtimecost.go`, apiserver `pkg/cel/library/cost.go`. Reading a character or byte
//! costs a tenth; sums are rounded up once, as in the reference.

use crate::cost::{Bounds, CallEstimate, Operand, REGEX_LENGTH, STRING_TRAVERSAL, scale};
use crate::limits::PER_CALL_LIMIT;
use crate::types::Type;
use crate::value::{EvalError, Opaque, Value};

/// Making a list.
pub(crate) const LIST: u64 = 10;
/// Making an object.
pub(crate) const STRUCT: u64 = 40;

/// The size that costs are counted in: code points, bytes, items, entries; one for every other value.
#[must_use]
pub(crate) fn size(value: &Value<'_>) -> u64 {
    match value {
        Value::String(text) => length(characters(text)),
        Value::Bytes(bytes) => length(bytes.len()),
        Value::List(list) => length(list.len()),
        Value::Map(map) => length(map.len()),
        Value::Optional(Some(inner)) => size(inner),
        // Addresses count their bytes, networks those of the prefix.
        Value::Opaque(Opaque::Ip(address)) => {
            if address.is_ipv4() {
                4
            } else {
                16
            }
        }
        Value::Opaque(Opaque::Cidr(_, prefix)) => u64::from(prefix.div_ceil(8)),
        Value::Null
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Uint(_)
        | Value::Double(_)
        | Value::Duration(_)
        | Value::Timestamp(_)
        | Value::Type(_)
        | Value::Optional(None)
        | Value::Opaque(_) => 1,
    }
}

/// Counts the characters. Most strings are ASCII, which is faster to detect than to count.
fn characters(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().count() }
}

pub(crate) fn length(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

/// The size of an argument; of none, one.
pub(crate) fn size_of(args: &[Value<'_>], index: usize) -> u64 {
    args.get(index).map_or(1, size)
}

/// Rejects, before the work is done, a call whose cost alone exceeds the limit of an evaluation.
///
/// # Errors
///
/// The cost limit is exceeded.
pub(crate) const fn affordable(cost: u64) -> Result<(), EvalError> {
    if cost > PER_CALL_LIMIT { Err(EvalError::CostLimitExceeded) } else { Ok(()) }
}

/// What the estimator knows of the size of an argument.
pub(crate) fn bounds_of(args: &[Operand<'_>], index: usize) -> Bounds {
    args.get(index).map_or(Bounds::UNBOUNDED, Operand::size_or_unbounded)
}

pub(crate) fn one(_: &[Value<'_>], _: &Value<'_>) -> u64 {
    1
}

pub(crate) const fn estimate_one(_: &[Operand<'_>]) -> CallEstimate {
    CallEstimate::ONE
}

/// Returns the cost of reading every character of the first argument.
pub(crate) fn traverse_first(args: &[Value<'_>], _: &Value<'_>) -> u64 {
    scale(size_of(args, 0), STRING_TRAVERSAL)
}

/// Returns the cost of reading every character of the second argument.
pub(crate) fn traverse_second(args: &[Value<'_>], _: &Value<'_>) -> u64 {
    scale(size_of(args, 1), STRING_TRAVERSAL)
}

pub(crate) fn estimate_traverse_first(args: &[Operand<'_>]) -> CallEstimate {
    CallEstimate::of_cost(bounds_of(args, 0).scaled(STRING_TRAVERSAL))
}

/// The same, with a result as large as the argument.
pub(crate) fn estimate_rewrite_first(args: &[Operand<'_>]) -> CallEstimate {
    let size = bounds_of(args, 0);
    CallEstimate::with_result(size.scaled(STRING_TRAVERSAL), size)
}

/// `startsWith` and `endsWith`: the estimate looks at the argument, the meter at the receiver.
pub(crate) fn estimate_traverse_second(args: &[Operand<'_>]) -> CallEstimate {
    CallEstimate::of_cost(bounds_of(args, 1).scaled(STRING_TRAVERSAL))
}

/// Two looks at every character of the first argument.
pub(crate) fn traverse_first_twice(args: &[Value<'_>], _: &Value<'_>) -> u64 {
    scale(size_of(args, 0), 2.0 * STRING_TRAVERSAL)
}

pub(crate) fn estimate_traverse_first_twice(args: &[Operand<'_>]) -> CallEstimate {
    CallEstimate::of_cost(bounds_of(args, 0).scaled(2.0 * STRING_TRAVERSAL))
}

/// Comparing two values up to the end of the shorter.
pub(crate) fn compare(args: &[Value<'_>], _: &Value<'_>) -> u64 {
    scale(size_of(args, 0).min(size_of(args, 1)), STRING_TRAVERSAL)
}

/// The same of two strings. Up to ten characters cost one, so that short strings, which most are, need no counting.
#[inline]
pub(crate) fn compare_strings(a: &str, b: &str) -> u64 {
    match a.len().min(b.len()) {
        0 => 0,
        1..=10 => 1,
        _ => scale(length(characters(a).min(characters(b))), STRING_TRAVERSAL),
    }
}

pub(crate) fn estimate_compare(args: &[Operand<'_>]) -> CallEstimate {
    let max = bounds_of(args, 0).max.min(bounds_of(args, 1).max);
    CallEstimate::of_cost(Bounds::new(u64::from(max > 0), max).scaled(STRING_TRAVERSAL))
}

/// Copying both arguments into one.
pub(crate) fn concatenate(args: &[Value<'_>], _: &Value<'_>) -> u64 {
    scale(size_of(args, 0).saturating_add(size_of(args, 1)), STRING_TRAVERSAL)
}

pub(crate) fn estimate_concatenate(args: &[Operand<'_>]) -> CallEstimate {
    let size = bounds_of(args, 0).plus(bounds_of(args, 1));
    CallEstimate::with_result(size.scaled(STRING_TRAVERSAL), size)
}

/// Looking for the second argument everywhere in the first.
pub(crate) fn search(args: &[Value<'_>], _: &Value<'_>) -> u64 {
    scale(size_of(args, 0), STRING_TRAVERSAL).saturating_mul(scale(size_of(args, 1), STRING_TRAVERSAL))
}

pub(crate) fn estimate_search(args: &[Operand<'_>]) -> CallEstimate {
    CallEstimate::of_cost(
        bounds_of(args, 0).scaled(STRING_TRAVERSAL).times(bounds_of(args, 1).scaled(STRING_TRAVERSAL)),
    )
}

/// Returns the cost of matching the second argument, a regular expression, against the first. One is added to the string's length so
/// that an expensive expression is not free on an empty string.
pub(crate) fn match_regex(args: &[Value<'_>], _: &Value<'_>) -> u64 {
    let text = scale(size_of(args, 0).saturating_add(1), STRING_TRAVERSAL);
    text.saturating_mul(scale(size_of(args, 1), REGEX_LENGTH))
}

pub(crate) fn estimate_match_regex(args: &[Operand<'_>]) -> CallEstimate {
    let text = bounds_of(args, 0).plus(Bounds::ONE).scaled(STRING_TRAVERSAL);
    CallEstimate::of_cost(text.times(bounds_of(args, 1).scaled(REGEX_LENGTH)))
}

/// Returns the cost of walking the first argument as a tree: a tenth per byte of a string, rounded down per string; one per other
/// scalar.
pub(crate) fn scan(args: &[Value<'_>], _: &Value<'_>) -> u64 {
    args.first().map_or(0, walk)
}

#[expect(clippy::cast_possible_truncation, reason = "a tenth of a length fits")]
fn walk(value: &Value<'_>) -> u64 {
    match value {
        Value::String(text) => (text.len() as f64 * STRING_TRAVERSAL) as u64,
        Value::Bytes(bytes) => (bytes.len() as f64 * STRING_TRAVERSAL) as u64,
        Value::List(list) => list.iter().fold(0, |sum: u64, item| sum.saturating_add(walk(&item))),
        Value::Map(map) => map
            .iter()
            .fold(0, |sum: u64, (key, item)| sum.saturating_add(walk(&key)).saturating_add(walk(&item))),
        _ => 1,
    }
}

/// Estimates reading each item, and each character of items that are strings.
pub(crate) fn estimate_scan(args: &[Operand<'_>]) -> CallEstimate {
    let Some(first) = args.first() else { return CallEstimate::ONE };
    let size = first.size_or_unbounded();
    let (Type::List(item) | Type::Map(item, _) | Type::Optional(item)) = first.ty else {
        return CallEstimate::of_cost(size.scaled(STRING_TRAVERSAL));
    };
    let each = match **item {
        Type::String | Type::Bytes => {
            Bounds::ONE.plus(first.items.unwrap_or(Bounds::UNBOUNDED).scaled(STRING_TRAVERSAL))
        }
        _ => Bounds::ONE,
    };
    CallEstimate::of_cost(size.times(each))
}
