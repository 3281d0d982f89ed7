//! Implements `+ - * / %` and unary minus. Integer overflow is an error, doubles follow IEEE 754; timestamps and durations stay within
//! Go's ranges.

use admit_apimachinery::go::duration::SECOND;
use admit_apimachinery::go::instant::{MAX_SECONDS, MIN_SECONDS};

use crate::library::{Context, Overload, cost, mismatch};
use crate::value::{Duration as Span, EvalError, List, Timestamp as Instant, Value};
use Value::{Bytes, Double, Duration, Int, String, Timestamp, Uint};

pub(super) const ROWS: &[Overload] = &[
    // Addition.
    Overload::new("add_bytes", "_+_(bytes, bytes) -> bytes", add_bytes, "Joins two byte sequences.")
        .costs(cost::estimate_concatenate, cost::concatenate),
    Overload::new(
        "add_double",
        "_+_(double, double) -> double",
        |_, args| double(args, |x, y| x + y),
        "Adds two doubles.",
    ),
    Overload::new(
        "add_duration_duration",
        "_+_(duration, duration) -> duration",
        |_, args| spans(args, i64::checked_add),
        "Adds two durations.",
    ),
    Overload::new(
        "add_duration_timestamp",
        "_+_(duration, timestamp) -> timestamp",
        |_, args| match args {
            [Duration(span), Timestamp(instant)] => shift(*instant, span.0),
            _ => mismatch(),
        },
        "The instant that lies a duration later.",
    ),
    Overload::new(
        "add_timestamp_duration",
        "_+_(timestamp, duration) -> timestamp",
        |_, args| match args {
            [Timestamp(instant), Duration(span)] => shift(*instant, span.0),
            _ => mismatch(),
        },
        "The instant that lies a duration later.",
    ),
    Overload::new(
        "add_int64",
        "_+_(int, int) -> int",
        |_, args| int(args, i64::checked_add),
        "Adds two integers.",
    ),
    Overload::new("add_list", "_+_(list(A), list(A)) -> list(A)", add_lists, "Joins two lists.").costs(
        |args| {
            crate::cost::CallEstimate::with_result(
                crate::cost::Bounds::ONE,
                cost::bounds_of(args, 0).plus(cost::bounds_of(args, 1)),
            )
        },
        cost::one,
    ),
    Overload::new("add_string", "_+_(string, string) -> string", add_strings, "Joins two strings.")
        .costs(cost::estimate_concatenate, cost::concatenate),
    Overload::new(
        "add_uint64",
        "_+_(uint, uint) -> uint",
        |_, args| uint(args, u64::checked_add),
        "Adds two unsigned integers.",
    ),
    // Division.
    Overload::new(
        "divide_double",
        "_/_(double, double) -> double",
        |_, args| double(args, |x, y| x / y),
        "Divides two doubles; by zero, an infinity or NaN.",
    ),
    Overload::new(
        "divide_int64",
        "_/_(int, int) -> int",
        |_, args| match args {
            [Int(_), Int(0)] => Err(EvalError::DivisionByZero),
            _ => int(args, i64::checked_div),
        },
        "Divides two integers, towards zero.",
    ),
    Overload::new(
        "divide_uint64",
        "_/_(uint, uint) -> uint",
        |_, args| match args {
            [Uint(_), Uint(0)] => Err(EvalError::DivisionByZero),
            _ => uint(args, u64::checked_div),
        },
        "Divides two unsigned integers, towards zero.",
    ),
    // Modulus.
    Overload::new(
        "modulo_int64",
        "_%_(int, int) -> int",
        |_, args| match args {
            [Int(_), Int(0)] => Err(EvalError::ModulusByZero),
            _ => int(args, i64::checked_rem),
        },
        "The rest of a division, with the sign of the dividend.",
    ),
    Overload::new(
        "modulo_uint64",
        "_%_(uint, uint) -> uint",
        |_, args| match args {
            [Uint(_), Uint(0)] => Err(EvalError::ModulusByZero),
            _ => uint(args, u64::checked_rem),
        },
        "The rest of a division.",
    ),
    // Multiplication.
    Overload::new(
        "multiply_double",
        "_*_(double, double) -> double",
        |_, args| double(args, |x, y| x * y),
        "Multiplies two doubles.",
    ),
    Overload::new(
        "multiply_int64",
        "_*_(int, int) -> int",
        |_, args| int(args, i64::checked_mul),
        "Multiplies two integers.",
    ),
    Overload::new(
        "multiply_uint64",
        "_*_(uint, uint) -> uint",
        |_, args| uint(args, u64::checked_mul),
        "Multiplies two unsigned integers.",
    ),
    // Negation.
    Overload::new("negate_double", "-_(double) -> double", negate, "The negative of a double."),
    Overload::new("negate_int64", "-_(int) -> int", negate, "The negative of an integer."),
    // Subtraction.
    Overload::new(
        "subtract_double",
        "_-_(double, double) -> double",
        |_, args| double(args, |x, y| x - y),
        "Subtracts two doubles.",
    ),
    Overload::new(
        "subtract_duration_duration",
        "_-_(duration, duration) -> duration",
        |_, args| spans(args, i64::checked_sub),
        "Subtracts two durations.",
    ),
    Overload::new(
        "subtract_int64",
        "_-_(int, int) -> int",
        |_, args| int(args, i64::checked_sub),
        "Subtracts two integers.",
    ),
    Overload::new(
        "subtract_timestamp_duration",
        "_-_(timestamp, duration) -> timestamp",
        |_, args| match args {
            [Timestamp(instant), Duration(span)] => {
                shift(*instant, span.0.checked_neg().ok_or(EvalError::IntegerOverflow)?)
            }
            _ => mismatch(),
        },
        "The instant that lies a duration earlier.",
    ),
    Overload::new(
        "subtract_timestamp_timestamp",
        "_-_(timestamp, timestamp) -> duration",
        |_, args| match args {
            [Timestamp(x), Timestamp(y)] => between(*x, *y),
            _ => mismatch(),
        },
        "The time from the second instant to the first.",
    ),
    Overload::new(
        "subtract_uint64",
        "_-_(uint, uint) -> uint",
        |_, args| uint(args, u64::checked_sub),
        "Subtracts two unsigned integers; a negative result is an error.",
    ),
];

/// A duration gets here past the checker, as `dyn`.
fn negate<'a>(_: &Context<'a>, args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    match args {
        [Double(x)] => Ok(Double(-x)),
        [Int(x)] => x.checked_neg().map(Int).ok_or(EvalError::IntegerOverflow),
        [Duration(x)] => {
            x.0.checked_neg().map(|nanos| Duration(Span(nanos))).ok_or(EvalError::IntegerOverflow)
        }
        _ => mismatch(),
    }
}

fn int<'a>(args: &[Value<'a>], operation: fn(i64, i64) -> Option<i64>) -> Result<Value<'a>, EvalError> {
    let [Int(x), Int(y)] = args else { return mismatch() };
    operation(*x, *y).map(Int).ok_or(EvalError::IntegerOverflow)
}

fn uint<'a>(args: &[Value<'a>], operation: fn(u64, u64) -> Option<u64>) -> Result<Value<'a>, EvalError> {
    let [Uint(x), Uint(y)] = args else { return mismatch() };
    operation(*x, *y).map(Uint).ok_or(EvalError::UnsignedOverflow)
}

fn double<'a>(args: &[Value<'a>], operation: fn(f64, f64) -> f64) -> Result<Value<'a>, EvalError> {
    let [Double(x), Double(y)] = args else { return mismatch() };
    Ok(Double(operation(*x, *y)))
}

fn spans<'a>(args: &[Value<'a>], operation: fn(i64, i64) -> Option<i64>) -> Result<Value<'a>, EvalError> {
    let [Duration(x), Duration(y)] = args else { return mismatch() };
    operation(x.0, y.0).map(|nanos| Duration(Span(nanos))).ok_or(EvalError::IntegerOverflow)
}

fn shift<'a>(instant: Instant, nanos: i64) -> Result<Value<'a>, EvalError> {
    const NANOS: i128 = SECOND as i128;
    let start = i128::from(instant.seconds).saturating_mul(NANOS).saturating_add(i128::from(instant.nanos));
    let end = start.saturating_add(i128::from(nanos));
    let seconds = i64::try_from(end.div_euclid(NANOS)).map_err(|_| EvalError::TimestampOverflow)?;
    let nanos = u32::try_from(end.rem_euclid(NANOS)).map_err(|_| EvalError::TimestampOverflow)?;
    if !(MIN_SECONDS..=MAX_SECONDS).contains(&seconds) {
        return Err(EvalError::TimestampOverflow);
    }
    Ok(Timestamp(Instant { seconds, nanos, offset: instant.offset }))
}

/// Seconds are scaled before nanoseconds are added, as cel-go does, so the very ends of the range overflow too.
fn between<'a>(x: Instant, y: Instant) -> Result<Value<'a>, EvalError> {
    let seconds = x.seconds.checked_sub(y.seconds).and_then(|s| s.checked_mul(SECOND));
    let nanos = i64::from(x.nanos).saturating_sub(i64::from(y.nanos));
    seconds.and_then(|s| s.checked_add(nanos)).map(|n| Duration(Span(n))).ok_or(EvalError::IntegerOverflow)
}

fn add_strings<'a>(context: &Context<'a>, args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    let [String(x), String(y)] = args else { return mismatch() };
    context.joined(&[x, y])
}

fn add_bytes<'a>(context: &Context<'a>, args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    let [Bytes(x), Bytes(y)] = args else { return mismatch() };
    context.joined_bytes(x, y)
}

fn add_lists<'a>(context: &Context<'a>, args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    match args {
        // Either is as it is, with its declared type.
        [Value::List(x), Value::List(y)] if x.is_empty() => Ok(Value::List(*y)),
        [Value::List(x), Value::List(y)] if y.is_empty() => Ok(Value::List(*x)),
        [Value::List(x), Value::List(y)] => {
            let items = context.slice(x.len().saturating_add(y.len()), x.iter().chain(y.iter()))?;
            Ok(Value::List(List::Values(items)))
        }
        _ => mismatch(),
    }
}
