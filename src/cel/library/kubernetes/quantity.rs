//! Implements resource quantities: `quantity('1.5Gi')`, their arithmetic and order.

use std::cmp::Ordering;

use admit_apimachinery::quantity::{Quantity as Number, QuantityError};

use crate::library::{Context, Overload, Version, cost, mismatch};
use crate::value::{EvalError, Opaque, Quantity, Value};
use Value::{Bool, Double, Int, String};

const SINCE: Version = Version(1, 28);

pub(super) const ROWS: &[Overload] = &[
    Overload::new(
        "string_to_quantity",
        "quantity(string) -> kubernetes.Quantity",
        |context, args| match args {
            [String(text)] => keep(context, Number::parse(text), false),
            _ => mismatch(),
        },
        "Reads a resource quantity such as `1.5Gi`.",
    )
    .costs_by_name(cost::estimate_traverse_first, cost::traverse_first)
    .since(SINCE),
    Overload::new(
        "is_quantity_string",
        "isQuantity(string) -> bool",
        |_, args| match args {
            [String(text)] => Ok(Bool(Number::parse(text).is_ok())),
            _ => mismatch(),
        },
        "Whether `quantity` reads a string.",
    )
    .costs_by_name(cost::estimate_traverse_first, cost::traverse_first)
    .since(SINCE),
    Overload::new(
        "quantity_sign",
        "sign(kubernetes.Quantity) -> int",
        |_, args| one(args, |quantity| Int(number(quantity.sign()))),
        "-1, 0 or 1 for a negative, zero or positive quantity.",
    )
    .since(SINCE),
    Overload::new(
        "quantity_is_greater_than",
        "kubernetes.Quantity.isGreaterThan(kubernetes.Quantity) -> bool",
        |_, args| two(args, |order| Bool(order.is_gt())),
        "Whether a quantity is greater than another.",
    )
    .since(SINCE),
    Overload::new(
        "quantity_is_less_than",
        "kubernetes.Quantity.isLessThan(kubernetes.Quantity) -> bool",
        |_, args| two(args, |order| Bool(order.is_lt())),
        "Whether a quantity is less than another.",
    )
    .since(SINCE),
    Overload::new(
        "quantity_compare_to",
        "kubernetes.Quantity.compareTo(kubernetes.Quantity) -> int",
        |_, args| two(args, |order| Int(number(order))),
        "-1, 0 or 1 for a quantity less than, equal to or greater than another.",
    )
    .since(SINCE),
    Overload::new(
        "quantity_get_float",
        "kubernetes.Quantity.asApproximateFloat() -> double",
        |_, args| one(args, |quantity| Double(quantity.approximate())),
        "A double near the quantity.",
    )
    .since(SINCE),
    Overload::new(
        "quantity_get_int",
        "kubernetes.Quantity.asInteger() -> int",
        |_, args| match args {
            [Value::Opaque(Opaque::Quantity(quantity))] => quantity
                .number
                .as_integer()
                .map(Int)
                .ok_or_else(|| EvalError::other("cannot convert value to integer")),
            _ => mismatch(),
        },
        "The quantity as an integer; an error if it is none or too large.",
    )
    .since(SINCE),
    Overload::new(
        "quantity_is_integer",
        "kubernetes.Quantity.isInteger() -> bool",
        |_, args| one(args, |quantity| Bool(quantity.as_integer().is_some())),
        "Whether `asInteger` has no error.",
    )
    .since(SINCE),
    Overload::new(
        "quantity_add",
        "kubernetes.Quantity.add(kubernetes.Quantity) -> kubernetes.Quantity",
        |context, args| combine(context, args, Number::plus),
        "The sum of two quantities, in the format of the first.",
    )
    .since(SINCE),
    Overload::new(
        "quantity_add_int",
        "kubernetes.Quantity.add(int) -> kubernetes.Quantity",
        |context, args| combine(context, args, Number::plus),
        "The sum of a quantity and an integer.",
    )
    .since(SINCE),
    Overload::new(
        "quantity_sub",
        "kubernetes.Quantity.sub(kubernetes.Quantity) -> kubernetes.Quantity",
        |context, args| combine(context, args, Number::minus),
        "The difference of two quantities, in the format of the first.",
    )
    .since(SINCE),
    Overload::new(
        "quantity_sub_int",
        "kubernetes.Quantity.sub(int) -> kubernetes.Quantity",
        |context, args| combine(context, args, Number::minus),
        "The difference of a quantity and an integer.",
    )
    .since(SINCE),
];

fn keep<'a>(
    context: &Context<'a>,
    number: Result<Number<'a>, QuantityError>,
    computed: bool,
) -> Result<Value<'a>, EvalError> {
    let number = number.map_err(|error| EvalError::other(error.to_string()))?;
    let number = number.kept(|digits| context.str(digits))?;
    context.keep(Quantity { number, computed }).map(|quantity| Value::Opaque(Opaque::Quantity(quantity)))
}

const fn number(order: Ordering) -> i64 {
    match order {
        Ordering::Less => -1,
        Ordering::Equal => 0,
        Ordering::Greater => 1,
    }
}

fn one<'a>(args: &[Value<'a>], body: fn(&Number<'_>) -> Value<'a>) -> Result<Value<'a>, EvalError> {
    match args {
        [Value::Opaque(Opaque::Quantity(quantity))] => Ok(body(&quantity.number)),
        _ => mismatch(),
    }
}

fn two<'a>(args: &[Value<'a>], body: fn(Ordering) -> Value<'a>) -> Result<Value<'a>, EvalError> {
    match args {
        [Value::Opaque(Opaque::Quantity(x)), Value::Opaque(Opaque::Quantity(y))] => {
            Ok(body(x.number.compare(&y.number)))
        }
        _ => mismatch(),
    }
}

type Operation<'a> = fn(&Number<'a>, &Number<'a>) -> Result<Number<'a>, QuantityError>;

fn combine<'a>(
    context: &Context<'a>,
    args: &[Value<'a>],
    operation: Operation<'a>,
) -> Result<Value<'a>, EvalError> {
    let number = match args {
        [Value::Opaque(Opaque::Quantity(x)), Value::Opaque(Opaque::Quantity(y))] => {
            operation(&x.number, &y.number)
        }
        [Value::Opaque(Opaque::Quantity(x)), Int(y)] => operation(&x.number, &Number::of_integer(*y)),
        _ => return mismatch(),
    };
    keep(context, number, true)
}
