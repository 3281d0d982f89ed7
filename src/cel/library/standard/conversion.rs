//! Implements conversions between types, named after the type that they return.
use admit_apimachinery::go::layout::{self, Layout};
use admit_apimachinery::go::{
    duration, float,
    instant::{MAX_SECONDS, MIN_SECONDS},
    integer,
};

use crate::cost::{Bounds, CallEstimate, Operand, STRING_TRAVERSAL};
use crate::library::{Context, Overload, cost, mismatch};
use crate::value::{Duration as Span, EvalError, Timestamp as Instant, Value, runtime_type};
use Value::{Bool, Bytes, Double, Duration, Int, String, Timestamp, Uint};

pub(super) const ROWS: &[Overload] = &[
    Overload::new(
        "type",
        "type(A) -> type(A)",
        |_, args| match args {
            [value] => Ok(Value::Type(runtime_type::of(value))),
            _ => mismatch(),
        },
        "The type of a value.",
    ),
    // bool
    Overload::new("bool_to_bool", "bool(bool) -> bool", identity, "The boolean itself."),
    Overload::new(
        "string_to_bool",
        "bool(string) -> bool",
        string_to_bool,
        "Reads `true`, `false` and the shorter forms `t`, `f`, `1`, `0`.",
    ),
    // bytes
    Overload::new("bytes_to_bytes", "bytes(bytes) -> bytes", identity, "The bytes themselves."),
    Overload::new(
        "string_to_bytes",
        "bytes(string) -> bytes",
        |_, args| match args {
            [String(text)] => Ok(Bytes(text.as_bytes())),
            _ => mismatch(),
        },
        "The UTF-8 form of a string.",
    )
    .costs(estimate_string_to_bytes, cost::traverse_first),
    // double
    Overload::new("double_to_double", "double(double) -> double", identity, "The double itself."),
    Overload::new(
        "int64_to_double",
        "double(int) -> double",
        |_, args| match args {
            [Int(i)] => Ok(Double(*i as f64)),
            _ => mismatch(),
        },
        "The nearest double.",
    ),
    Overload::new(
        "string_to_double",
        "double(string) -> double",
        |_, args| match args {
            [String(text)] => float::parse(text).map(Double).ok_or_else(|| unreadable("double")),
            _ => mismatch(),
        },
        "Reads a number, an infinity or `NaN`.",
    ),
    Overload::new(
        "uint64_to_double",
        "double(uint) -> double",
        |_, args| match args {
            [Uint(u)] => Ok(Double(*u as f64)),
            _ => mismatch(),
        },
        "The nearest double.",
    ),
    // duration
    Overload::new("duration_to_duration", "duration(duration) -> duration", identity, "The duration itself."),
    Overload::new(
        "int64_to_duration",
        "duration(int) -> duration",
        |_, _| Err(EvalError::Other("type conversion error from 'int' to 'google.protobuf.Duration'".into())),
        "Declared, yet always an error.",
    ),
    Overload::new(
        "string_to_duration",
        "duration(string) -> duration",
        |_, args| match args {
            [String(text)] => duration::parse(text)
                .map(|nanos| Duration(Span(nanos)))
                .map_err(|_| unreadable("google.protobuf.Duration")),
            _ => mismatch(),
        },
        "Reads numbers with the units `h`, `m`, `s`, `ms`, `us`, `ns`: `1h30m`.",
    ),
    // dyn
    Overload::new("to_dyn", "dyn(A) -> dyn", identity, "The value itself, unknown to the type checker."),
    // int
    Overload::new("int64_to_int64", "int(int) -> int", identity, "The integer itself."),
    Overload::new("double_to_int64", "int(double) -> int", double_to_int, "The double without its fraction."),
    Overload::new(
        "duration_to_int64",
        "int(duration) -> int",
        |_, args| match args {
            [Duration(span)] => Ok(Int(span.0)),
            _ => mismatch(),
        },
        "The nanoseconds of a duration.",
    ),
    Overload::new(
        "string_to_int64",
        "int(string) -> int",
        |_, args| match args {
            [String(text)] => integer::parse_int(text).map(Int).ok_or_else(|| unreadable("int")),
            _ => mismatch(),
        },
        "Reads a decimal integer.",
    ),
    Overload::new(
        "timestamp_to_int64",
        "int(timestamp) -> int",
        |_, args| match args {
            [Timestamp(instant)] => Ok(Int(instant.seconds)),
            _ => mismatch(),
        },
        "The seconds since 1970-01-01T00:00:00Z.",
    ),
    Overload::new(
        "uint64_to_int64",
        "int(uint) -> int",
        |_, args| match args {
            [Uint(u)] => i64::try_from(*u).map(Int).map_err(|_| EvalError::IntegerOverflow),
            _ => mismatch(),
        },
        "The same number, signed.",
    ),
    // string
    Overload::new("string_to_string", "string(string) -> string", identity, "The string itself."),
    Overload::new(
        "bool_to_string",
        "string(bool) -> string",
        |_, args| match args {
            [Bool(b)] => Ok(String(if *b { "true" } else { "false" })),
            _ => mismatch(),
        },
        "`true` or `false`.",
    ),
    Overload::new(
        "bytes_to_string",
        "string(bytes) -> string",
        |_, args| match args {
            [Bytes(bytes)] => std::str::from_utf8(bytes)
                .map(String)
                .map_err(|_| EvalError::Other("invalid UTF-8 in bytes, cannot convert to string".into())),
            _ => mismatch(),
        },
        "The string whose UTF-8 form the bytes are.",
    )
    .costs(estimate_bytes_to_string, cost::traverse_first),
    Overload::new(
        "double_to_string",
        "string(double) -> string",
        to_text,
        "The shortest text that reads back, with an exponent from 1e+06 and below 1e-04.",
    ),
    Overload::new("duration_to_string", "string(duration) -> string", to_text, "The seconds, as `5400s`."),
    Overload::new("int64_to_string", "string(int) -> string", to_text, "The decimal text."),
    Overload::new("timestamp_to_string", "string(timestamp) -> string", to_text, "The text of RFC 3339."),
    Overload::new("uint64_to_string", "string(uint) -> string", to_text, "The decimal text."),
    // timestamp
    Overload::new(
        "timestamp_to_timestamp",
        "timestamp(timestamp) -> timestamp",
        identity,
        "The timestamp itself.",
    ),
    Overload::new(
        "int64_to_timestamp",
        "timestamp(int) -> timestamp",
        |_, args| match args {
            [Int(seconds)] => in_range(Instant { seconds: *seconds, nanos: 0, offset: 0 }),
            _ => mismatch(),
        },
        "The instant so many seconds after 1970-01-01T00:00:00Z.",
    ),
    Overload::new(
        "string_to_timestamp",
        "timestamp(string) -> timestamp",
        |_, args| match args {
            [String(text)] => in_range(
                layout::parse(Layout::Rfc3339, text).map_err(|_| unreadable("google.protobuf.Timestamp"))?,
            ),
            _ => mismatch(),
        },
        "Reads a text of RFC 3339.",
    ),
    // uint
    Overload::new("uint64_to_uint64", "uint(uint) -> uint", identity, "The unsigned integer itself."),
    Overload::new(
        "double_to_uint64",
        "uint(double) -> uint",
        double_to_uint,
        "The double without its fraction.",
    ),
    Overload::new(
        "int64_to_uint64",
        "uint(int) -> uint",
        |_, args| match args {
            [Int(i)] => u64::try_from(*i).map(Uint).map_err(|_| EvalError::UnsignedOverflow),
            _ => mismatch(),
        },
        "The same number, unsigned.",
    ),
    Overload::new(
        "string_to_uint64",
        "uint(string) -> uint",
        |_, args| match args {
            [String(text)] => integer::parse_uint(text).map(Uint).ok_or_else(|| unreadable("uint")),
            _ => mismatch(),
        },
        "Reads a decimal number without a sign.",
    ),
];

fn identity<'a>(_: &Context<'a>, args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    args.first().copied().map_or_else(mismatch, Ok)
}

fn unreadable(target: &str) -> EvalError {
    EvalError::Other(format!("type conversion error from 'string' to '{target}'").into())
}

fn string_to_bool<'a>(_: &Context<'a>, args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    let [String(text)] = args else { return mismatch() };
    match *text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(Bool(true)),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(Bool(false)),
        _ => Err(unreadable("bool")),
    }
}

/// Both ends of the range are out of it, as in cel-go.
fn double_to_int<'a>(_: &Context<'a>, args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    let [Double(d)] = args else { return mismatch() };
    let is_in_range = *d > i64::MIN as f64 && *d < i64::MAX as f64;
    let whole = Double(d.trunc()).whole_number().filter(|_| is_in_range);
    whole.and_then(|whole| i64::try_from(whole).ok()).map(Int).ok_or(EvalError::IntegerOverflow)
}

fn double_to_uint<'a>(_: &Context<'a>, args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    let [Double(d)] = args else { return mismatch() };
    let is_in_range = *d >= 0.0 && *d < u64::MAX as f64;
    let whole = Double(d.trunc()).whole_number().filter(|_| is_in_range);
    whole.and_then(|whole| u64::try_from(whole).ok()).map(Uint).ok_or(EvalError::UnsignedOverflow)
}

fn in_range<'a>(instant: Instant) -> Result<Value<'a>, EvalError> {
    if (MIN_SECONDS..=MAX_SECONDS).contains(&instant.seconds) {
        Ok(Timestamp(instant))
    } else {
        Err(EvalError::TimestampOverflow)
    }
}

fn to_text<'a>(context: &Context<'a>, args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    let [value] = args else { return mismatch() };
    context.text(&value.number_text().ok_or(EvalError::NoSuchOverload)?)
}

/// A character has up to four bytes.
fn estimate_string_to_bytes(args: &[Operand<'_>]) -> CallEstimate {
    let size = cost::bounds_of(args, 0);
    CallEstimate::with_result(size.scaled(STRING_TRAVERSAL), Bounds::new(size.min, size.max.wrapping_mul(4)))
}

fn estimate_bytes_to_string(args: &[Operand<'_>]) -> CallEstimate {
    let size = cost::bounds_of(args, 0);
    CallEstimate::with_result(size.scaled(STRING_TRAVERSAL), Bounds::new(size.min.wrapping_div(4), size.max))
}
