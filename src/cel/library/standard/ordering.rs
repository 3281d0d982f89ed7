//! Implements `<`, `<=`, `>`, `>=` for every pair of types that has an order; numbers compare across their types.

use std::cmp::Ordering;

use crate::library::{Context, Overload, Version, cost, mismatch};
use crate::value::{EvalError, Value};

/// The rows of one operator: its id prefix, its function, its body, its words.
macro_rules! rows {
    ($id:literal, $function:literal, $body:expr, $words:literal) => {
        &[
            row!($id, "_bool", $function, "bool", "bool", $body, $words),
            row!($id, "_int64", $function, "int", "int", $body, $words),
            row!($id, "_int64_double", $function, "int", "double", $body, $words).since(CROSS_TYPE),
            row!($id, "_int64_uint64", $function, "int", "uint", $body, $words).since(CROSS_TYPE),
            row!($id, "_uint64", $function, "uint", "uint", $body, $words),
            row!($id, "_uint64_double", $function, "uint", "double", $body, $words).since(CROSS_TYPE),
            row!($id, "_uint64_int64", $function, "uint", "int", $body, $words).since(CROSS_TYPE),
            row!($id, "_double", $function, "double", "double", $body, $words),
            row!($id, "_double_int64", $function, "double", "int", $body, $words).since(CROSS_TYPE),
            row!($id, "_double_uint64", $function, "double", "uint", $body, $words).since(CROSS_TYPE),
            row!($id, "_string", $function, "string", "string", $body, $words)
                .costs(cost::estimate_compare, cost::compare),
            row!($id, "_bytes", $function, "bytes", "bytes", $body, $words)
                .costs(cost::estimate_compare, cost::compare),
            row!($id, "_timestamp", $function, "timestamp", "timestamp", $body, $words),
            row!($id, "_duration", $function, "duration", "duration", $body, $words),
        ]
    };
}

macro_rules! row {
    ($id:literal, $suffix:literal, $function:literal, $left:literal, $right:literal, $body:expr, $words:literal) => {
        Overload::new(
            concat!($id, $suffix),
            concat!($function, "(", $left, ", ", $right, ") -> bool"),
            $body,
            concat!("Whether the first ", $left, " is ", $words, " the second ", $right, "."),
        )
    };
}

/// The version that added comparisons across number types.
const CROSS_TYPE: Version = Version(1, 28);

pub(super) const LESS: &[Overload] = rows!("less", "_<_", less, "less than");
pub(super) const LESS_EQUALS: &[Overload] = rows!("less_equals", "_<=_", less_equals, "at most");
pub(super) const GREATER: &[Overload] = rows!("greater", "_>_", greater, "greater than");
pub(super) const GREATER_EQUALS: &[Overload] = rows!("greater_equals", "_>=_", greater_equals, "at least");

fn less<'a>(_: &Context<'a>, args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    holds(args, Ordering::is_lt)
}

fn less_equals<'a>(_: &Context<'a>, args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    holds(args, Ordering::is_le)
}

fn greater<'a>(_: &Context<'a>, args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    holds(args, Ordering::is_gt)
}

fn greater_equals<'a>(_: &Context<'a>, args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    holds(args, Ordering::is_ge)
}

fn holds<'a>(args: &[Value<'a>], relation: fn(Ordering) -> bool) -> Result<Value<'a>, EvalError> {
    let [x, y] = args else { return mismatch() };
    Ok(Value::Bool(relation(x.compare(y)?)))
}
