//! Resource quantities: `quantity('1.5Gi')`, their arithmetic and order.

mod amount;
mod digits;
mod parse;
mod print;

use std::cmp::Ordering;

pub use amount::{Amount, Format, Quantity};

use crate::library::{Context, Overload, Version, cost, mismatch};
use crate::value::{EvalError, Opaque, Value};
use Value::{Bool, Double, Int, String};

const SINCE: Version = Version(1, 28);

pub(super) const ROWS: &[Overload] = &[
    Overload::new(
        "string_to_quantity",
        "quantity(string) -> kubernetes.Quantity",
        |context, args| match args {
            [String(text)] => keep(context, Quantity::parse(context, text)?),
            _ => mismatch(),
        },
        "Reads a resource quantity such as `1.5Gi`.",
    )
    .costs_by_name(cost::estimate_traverse_first, cost::traverse_first)
    .since(SINCE),
    Overload::new(
        "is_quantity_string",
        "isQuantity(string) -> bool",
        |context, args| match args {
            [String(text)] => Ok(Bool(Quantity::parse(context, text).is_ok())),
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
        |context, args| combine(context, args, Quantity::plus),
        "The sum of two quantities, in the format of the first.",
    )
    .since(SINCE),
    Overload::new(
        "quantity_add_int",
        "kubernetes.Quantity.add(int) -> kubernetes.Quantity",
        |context, args| combine(context, args, Quantity::plus),
        "The sum of a quantity and an integer.",
    )
    .since(SINCE),
    Overload::new(
        "quantity_sub",
        "kubernetes.Quantity.sub(kubernetes.Quantity) -> kubernetes.Quantity",
        |context, args| combine(context, args, Quantity::minus),
        "The difference of two quantities, in the format of the first.",
    )
    .since(SINCE),
    Overload::new(
        "quantity_sub_int",
        "kubernetes.Quantity.sub(int) -> kubernetes.Quantity",
        |context, args| combine(context, args, Quantity::minus),
        "The difference of a quantity and an integer.",
    )
    .since(SINCE),
];

fn keep<'a>(context: &Context<'a>, quantity: Quantity<'a>) -> Result<Value<'a>, EvalError> {
    context.keep(quantity).map(|quantity| Value::Opaque(Opaque::Quantity(quantity)))
}

const fn number(order: Ordering) -> i64 {
    match order {
        Ordering::Less => -1,
        Ordering::Equal => 0,
        Ordering::Greater => 1,
    }
}

fn one<'a>(args: &[Value<'a>], body: fn(&Quantity<'_>) -> Value<'a>) -> Result<Value<'a>, EvalError> {
    match args {
        [Value::Opaque(Opaque::Quantity(quantity))] => Ok(body(quantity)),
        _ => mismatch(),
    }
}

fn two<'a>(args: &[Value<'a>], body: fn(Ordering) -> Value<'a>) -> Result<Value<'a>, EvalError> {
    match args {
        [Value::Opaque(Opaque::Quantity(x)), Value::Opaque(Opaque::Quantity(y))] => Ok(body(x.compare(y))),
        _ => mismatch(),
    }
}

type Operation<'a> = fn(&Quantity<'a>, &Quantity<'a>, &Context<'a>) -> Result<Quantity<'a>, EvalError>;

fn combine<'a>(
    context: &Context<'a>,
    args: &[Value<'a>],
    operation: Operation<'a>,
) -> Result<Value<'a>, EvalError> {
    let quantity = match args {
        [Value::Opaque(Opaque::Quantity(x)), Value::Opaque(Opaque::Quantity(y))] => operation(x, y, context)?,
        [Value::Opaque(Opaque::Quantity(x)), Int(y)] => operation(x, &Quantity::of_integer(*y), context)?,
        _ => return mismatch(),
    };
    keep(context, quantity)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Result<std::string::String, std::string::String> {
        let arena = bumpalo::Bump::new();
        let context = Context { arena: &arena };
        Quantity::parse(&context, text)
            .map(|quantity| quantity.to_string())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn canonical_forms() {
        for (text, canonical) in [
            ("0", "0"),
            ("+", "0"),
            (".", "0"),
            ("1500m", "1500m"),
            ("1000m", "1"),
            ("0.5Gi", "512Mi"),
            ("1Ki", "1Ki"),
            ("1024Ki", "1Mi"),
            ("1000k", "1M"),
            ("1.5e3", "1500"),
            ("12e6", "12e6"),
            ("1Pi", "1Pi"),
            ("100Ei", "9223372036854775807"),
            ("0.1n", "1n"),
            ("-1.5Ki", "-1536"),
            ("123456789012345678901234567890", "123456789012345678901234567890"),
        ] {
            assert_eq!(shown(text).as_deref(), Ok(canonical), "{text}");
        }
        assert_eq!(shown("1Kii").unwrap_err(), "unable to parse quantity's suffix");
        assert!(shown("1.2.3").unwrap_err().starts_with("quantities must match"));
    }
}
