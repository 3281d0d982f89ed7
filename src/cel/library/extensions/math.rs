//! Implements cel-go's math library, which Kubernetes does not offer. `math.least` and `math.greatest` are macros over `math.@min` and
//! `math.@max`.

use std::cmp::Ordering;

use crate::library::{Context, Implementation, Overload, mismatch};
use crate::value::{EvalError, Value};
use Value::{Bool, Double, Int, Uint};

pub(in crate::library) const TABLES: &[&[Overload]] = &[LEAST, GREATEST, FLOATS, SIGNS, BITS, ROOTS];

const LEAST_DOC: &str = "The least of numbers of any type.";
const GREATEST_DOC: &str = "The greatest of numbers of any type.";

const LEAST: &[Overload] = &[
    Overload::new("math_@min_double", "math.@min(double) -> double", itself, LEAST_DOC),
    Overload::new("math_@min_int", "math.@min(int) -> int", itself, LEAST_DOC),
    Overload::new("math_@min_uint", "math.@min(uint) -> uint", itself, LEAST_DOC),
    Overload::new("math_@min_double_double", "math.@min(double, double) -> double", least, LEAST_DOC),
    Overload::new("math_@min_int_int", "math.@min(int, int) -> int", least, LEAST_DOC),
    Overload::new("math_@min_uint_uint", "math.@min(uint, uint) -> uint", least, LEAST_DOC),
    Overload::new("math_@min_int_uint", "math.@min(int, uint) -> dyn", least, LEAST_DOC),
    Overload::new("math_@min_int_double", "math.@min(int, double) -> dyn", least, LEAST_DOC),
    Overload::new("math_@min_double_int", "math.@min(double, int) -> dyn", least, LEAST_DOC),
    Overload::new("math_@min_double_uint", "math.@min(double, uint) -> dyn", least, LEAST_DOC),
    Overload::new("math_@min_uint_int", "math.@min(uint, int) -> dyn", least, LEAST_DOC),
    Overload::new("math_@min_uint_double", "math.@min(uint, double) -> dyn", least, LEAST_DOC),
    Overload::new("math_@min_list_double", "math.@min(list(double)) -> double", least, LEAST_DOC),
    Overload::new("math_@min_list_int", "math.@min(list(int)) -> int", least, LEAST_DOC),
    Overload::new("math_@min_list_uint", "math.@min(list(uint)) -> uint", least, LEAST_DOC),
];

const GREATEST: &[Overload] = &[
    Overload::new("math_@max_double", "math.@max(double) -> double", itself, GREATEST_DOC),
    Overload::new("math_@max_int", "math.@max(int) -> int", itself, GREATEST_DOC),
    Overload::new("math_@max_uint", "math.@max(uint) -> uint", itself, GREATEST_DOC),
    Overload::new("math_@max_double_double", "math.@max(double, double) -> double", greatest, GREATEST_DOC),
    Overload::new("math_@max_int_int", "math.@max(int, int) -> int", greatest, GREATEST_DOC),
    Overload::new("math_@max_uint_uint", "math.@max(uint, uint) -> uint", greatest, GREATEST_DOC),
    Overload::new("math_@max_int_uint", "math.@max(int, uint) -> dyn", greatest, GREATEST_DOC),
    Overload::new("math_@max_int_double", "math.@max(int, double) -> dyn", greatest, GREATEST_DOC),
    Overload::new("math_@max_double_int", "math.@max(double, int) -> dyn", greatest, GREATEST_DOC),
    Overload::new("math_@max_double_uint", "math.@max(double, uint) -> dyn", greatest, GREATEST_DOC),
    Overload::new("math_@max_uint_int", "math.@max(uint, int) -> dyn", greatest, GREATEST_DOC),
    Overload::new("math_@max_uint_double", "math.@max(uint, double) -> dyn", greatest, GREATEST_DOC),
    Overload::new("math_@max_list_double", "math.@max(list(double)) -> double", greatest, GREATEST_DOC),
    Overload::new("math_@max_list_int", "math.@max(list(int)) -> int", greatest, GREATEST_DOC),
    Overload::new("math_@max_list_uint", "math.@max(list(uint)) -> uint", greatest, GREATEST_DOC),
];

const FLOATS: &[Overload] = &[
    Overload::new(
        "math_ceil_double",
        "math.ceil(double) -> double",
        |_, args| of_double(args, |d| Double(d.ceil())),
        "The least whole number that is not less.",
    ),
    Overload::new(
        "math_floor_double",
        "math.floor(double) -> double",
        |_, args| of_double(args, |d| Double(d.floor())),
        "The greatest whole number that is not greater.",
    ),
    Overload::new(
        "math_round_double",
        "math.round(double) -> double",
        |_, args| of_double(args, |d| Double(d.round())),
        "The nearest whole number, halves away from zero.",
    ),
    Overload::new(
        "math_trunc_double",
        "math.trunc(double) -> double",
        |_, args| of_double(args, |d| Double(d.trunc())),
        "The number without its fraction.",
    ),
    Overload::new(
        "math_isInf_double",
        "math.isInf(double) -> bool",
        |_, args| of_double(args, |d| Bool(d.is_infinite())),
        "Whether a number is infinite.",
    ),
    Overload::new(
        "math_isNaN_double",
        "math.isNaN(double) -> bool",
        |_, args| of_double(args, |d| Bool(d.is_nan())),
        "Whether a double is no number.",
    ),
    Overload::new(
        "math_isFinite_double",
        "math.isFinite(double) -> bool",
        |_, args| of_double(args, |d| Bool(d.is_finite())),
        "Whether a double is a number and not infinite.",
    ),
];

const SIGNS: &[Overload] = &[
    Overload::new(
        "math_abs_double",
        "math.abs(double) -> double",
        |_, args| of_double(args, |d| Double(d.abs())),
        "The magnitude of a number.",
    ),
    Overload::new(
        "math_abs_int",
        "math.abs(int) -> int",
        |_, args| match args {
            [Int(i)] => i.checked_abs().map(Int).ok_or(EvalError::IntegerOverflow),
            _ => mismatch(),
        },
        "The magnitude of a number.",
    ),
    Overload::new("math_abs_uint", "math.abs(uint) -> uint", itself, "The number itself."),
    Overload::new(
        "math_sign_double",
        "math.sign(double) -> double",
        |_, args| {
            of_double(args, |d| {
                let zero_or_nan = d == 0.0 || d.is_nan();
                Double(if zero_or_nan { d + 0.0 } else { d.signum() })
            })
        },
        "-1, 0 or 1; a double that is no number stays.",
    ),
    Overload::new(
        "math_sign_int",
        "math.sign(int) -> int",
        |_, args| match args {
            [Int(i)] => Ok(Int(i.signum())),
            _ => mismatch(),
        },
        "-1, 0 or 1.",
    ),
    Overload::new(
        "math_sign_uint",
        "math.sign(uint) -> uint",
        |_, args| match args {
            [Uint(u)] => Ok(Uint((*u).min(1))),
            _ => mismatch(),
        },
        "0 or 1.",
    ),
];

const BITS: &[Overload] = &[
    bits("math_bitAnd_int_int", "math.bitAnd(int, int) -> int", |_, args| of_bits(args, |a, b| a & b)),
    bits("math_bitAnd_uint_uint", "math.bitAnd(uint, uint) -> uint", |_, args| of_bits(args, |a, b| a & b)),
    bits("math_bitOr_int_int", "math.bitOr(int, int) -> int", |_, args| of_bits(args, |a, b| a | b)),
    bits("math_bitOr_uint_uint", "math.bitOr(uint, uint) -> uint", |_, args| of_bits(args, |a, b| a | b)),
    bits("math_bitXor_int_int", "math.bitXor(int, int) -> int", |_, args| of_bits(args, |a, b| a ^ b)),
    bits("math_bitXor_uint_uint", "math.bitXor(uint, uint) -> uint", |_, args| of_bits(args, |a, b| a ^ b)),
    bits("math_bitNot_int_int", "math.bitNot(int) -> int", |_, args| match args {
        [Int(i)] => Ok(Int(!i)),
        _ => mismatch(),
    }),
    bits("math_bitNot_uint_uint", "math.bitNot(uint) -> uint", |_, args| match args {
        [Uint(u)] => Ok(Uint(!u)),
        _ => mismatch(),
    }),
    bits("math_bitShiftLeft_int_int", "math.bitShiftLeft(int, int) -> int", |_, args| {
        shifted(args, "math.bitShiftLeft()", |bits, by| bits.checked_shl(by).unwrap_or(0))
    }),
    bits("math_bitShiftLeft_uint_int", "math.bitShiftLeft(uint, int) -> uint", |_, args| {
        shifted(args, "math.bitShiftLeft()", |bits, by| bits.checked_shl(by).unwrap_or(0))
    }),
    bits("math_bitShiftRight_int_int", "math.bitShiftRight(int, int) -> int", |_, args| {
        shifted(args, "math.bitShiftRight()", |bits, by| bits.checked_shr(by).unwrap_or(0))
    }),
    bits("math_bitShiftRight_uint_int", "math.bitShiftRight(uint, int) -> uint", |_, args| {
        shifted(args, "math.bitShiftRight()", |bits, by| bits.checked_shr(by).unwrap_or(0))
    }),
];

const ROOTS: &[Overload] = &[
    Overload::new("math_sqrt_double", "math.sqrt(double) -> double", square_root, "The square root."),
    Overload::new("math_sqrt_int", "math.sqrt(int) -> double", square_root, "The square root."),
    Overload::new("math_sqrt_uint", "math.sqrt(uint) -> double", square_root, "The square root."),
];

const fn bits(id: &'static str, signature: &'static str, implementation: Implementation) -> Overload {
    Overload::new(id, signature, implementation, "Of the bits of integers; shifts fill with zeros.")
}

fn itself<'a>(_: &Context<'a>, args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    args.first().copied().map_or_else(mismatch, Ok)
}

fn of_double<'a>(args: &[Value<'a>], result: impl FnOnce(f64) -> Value<'a>) -> Result<Value<'a>, EvalError> {
    let [Double(d)] = args else { return mismatch() };
    Ok(result(*d))
}

fn least<'a>(_: &Context<'a>, args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    extreme(args, Ordering::Greater, "math.@min")
}

fn greatest<'a>(_: &Context<'a>, args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    extreme(args, Ordering::Less, "math.@max")
}

/// Returns the extreme number: a later one replaces it if their comparison gives `displaces`.
fn extreme<'a>(args: &[Value<'a>], displaces: Ordering, function: &str) -> Result<Value<'a>, EvalError> {
    let numbers = match args {
        [Value::List(list)] => *list,
        args => return among(args.iter().copied(), displaces, function),
    };
    if numbers.is_empty() {
        return Err(EvalError::other(format!("{function}(list) argument must not be empty")));
    }
    among(numbers.iter(), displaces, function)
}

fn among<'a>(
    mut numbers: impl Iterator<Item = Value<'a>>,
    displaces: Ordering,
    function: &str,
) -> Result<Value<'a>, EvalError> {
    let no_number = || EvalError::other(format!("no such overload: {function}"));
    let mut found = numbers.next().ok_or_else(no_number)?;
    for number in numbers {
        let order = found.compare(&number).map_err(|error| match error {
            EvalError::NoSuchOverload => no_number(),
            error => EvalError::other(format!("{error}: {function}")),
        })?;
        if order == displaces {
            found = number;
        }
    }
    if matches!(found, Int(_) | Uint(_) | Double(_)) { Ok(found) } else { Err(no_number()) }
}

fn of_bits<'a>(args: &[Value<'a>], operation: fn(u64, u64) -> u64) -> Result<Value<'a>, EvalError> {
    match args {
        [Int(a), Int(b)] => Ok(Int(operation(a.cast_unsigned(), b.cast_unsigned()).cast_signed())),
        [Uint(a), Uint(b)] => Ok(Uint(operation(*a, *b))),
        _ => mismatch(),
    }
}

/// Shifts fill with zeros, also those of negative numbers, and a shift by 64 bits or more leaves none.
fn shifted<'a>(
    args: &[Value<'a>],
    function: &str,
    operation: fn(u64, u32) -> u64,
) -> Result<Value<'a>, EvalError> {
    let by = |by: &i64| match u32::try_from(*by) {
        Ok(by) => Ok(by),
        Err(_) if *by < 0 => Err(EvalError::other(format!("{function} negative offset: {by}"))),
        Err(_) => Ok(u32::MAX),
    };
    match args {
        [Int(value), Int(offset)] => Ok(Int(operation(value.cast_unsigned(), by(offset)?).cast_signed())),
        [Uint(value), Int(offset)] => Ok(Uint(operation(*value, by(offset)?))),
        _ => mismatch(),
    }
}

fn square_root<'a>(_: &Context<'a>, args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    match args {
        [Double(d)] => Ok(Double(d.sqrt())),
        [Int(i)] => Ok(Double((*i as f64).sqrt())),
        [Uint(u)] => Ok(Double((*u as f64).sqrt())),
        _ => mismatch(),
    }
}
