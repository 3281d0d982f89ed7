//! Implements optional values. `or`, `orValue`, optional selection and optional indexing are steps that the planner handles itself.

use crate::library::functions::no_such_overload;
use crate::library::{Context, Overload, Version, mismatch, planned};
use crate::value::{EvalError, List, Opaque, Value, runtime_type};

const SINCE: Version = Version(1, 28);

pub(super) const ROWS: &[Overload] = &[
    Overload::new("optional_of", "optional.of(V) -> optional_type(V)", of, "An optional with this value.")
        .since(SINCE),
    Overload::new(
        "optional_ofNonZeroValue",
        "optional.ofNonZeroValue(V) -> optional_type(V)",
        |context, args| match args {
            [value] if is_zero(value) => Ok(Value::Optional(None)),
            _ => of(context, args),
        },
        "An optional with this value, or none if the value is null, zero or empty.",
    )
    .since(SINCE),
    Overload::new(
        "optional_none",
        "optional.none() -> optional_type(V)",
        |_, _| Ok(Value::Optional(None)),
        "An optional without a value.",
    )
    .since(SINCE),
    Overload::new(
        "optional_value",
        "optional_type(V).value() -> V",
        |_, args| match args {
            [Value::Optional(Some(value))] => value.taken(),
            [Value::Optional(None)] => Err(EvalError::other("optional.none() dereference")),
            // What an optional of an optional holds is an optional for the checker alone.
            _ => Err(no_such_overload("value", args)),
        },
        "The value of an optional; an error without one.",
    )
    .since(SINCE),
    Overload::new(
        "optional_hasValue",
        "optional_type(V).hasValue() -> bool",
        |_, args| match args {
            [Value::Optional(value)] => Ok(Value::Bool(value.is_some())),
            _ => Err(no_such_overload("hasValue", args)),
        },
        "Whether an optional has a value.",
    )
    .since(SINCE),
    Overload::new(
        "optional_or_optional",
        "optional_type(V).or(optional_type(V)) -> optional_type(V)",
        planned,
        "The first of two optionals that has a value.",
    )
    .since(SINCE),
    Overload::new(
        "optional_orValue_value",
        "optional_type(V).orValue(V) -> V",
        planned,
        "The value of an optional, or the second operand.",
    )
    .since(SINCE),
    Overload::new(
        "select_optional_field",
        "_?._(dyn, string) -> optional_type(V)",
        planned,
        "An optional of a field, without a value if the field is absent.",
    )
    .since(SINCE),
    Overload::new(
        "list_optindex_optional_int",
        "_[?_](list(V), int) -> optional_type(V)",
        planned,
        "An optional of an item, without a value if the position is out of the list.",
    )
    .since(SINCE),
    Overload::new(
        "optional_list_optindex_optional_int",
        "_[?_](optional_type(list(V)), int) -> optional_type(V)",
        planned,
        "The same, of an optional list.",
    )
    .since(SINCE),
    Overload::new(
        "map_optindex_optional_value",
        "_[?_](map(K, V), K) -> optional_type(V)",
        planned,
        "An optional of a key's value, without a value if the key is absent.",
    )
    .since(SINCE),
    Overload::new(
        "optional_map_optindex_optional_value",
        "_[?_](optional_type(map(K, V)), K) -> optional_type(V)",
        planned,
        "The same, of an optional map.",
    )
    .since(SINCE),
    Overload::new(
        "optional_list_index_int",
        "_[_](optional_type(list(V)), int) -> optional_type(V)",
        planned,
        "An optional of an item of an optional list.",
    )
    .since(SINCE),
    Overload::new(
        "optional_map_index_value",
        "_[_](optional_type(map(K, V)), K) -> optional_type(V)",
        planned,
        "An optional of a key's value of an optional map.",
    )
    .since(SINCE),
    Overload::new(
        "list_last",
        "list(V).last() -> optional_type(V)",
        |context, args| match args {
            [Value::List(list)] => {
                optional(context, list.len().checked_sub(1).and_then(|last| list.get(last)))
            }
            _ => mismatch(),
        },
        "An optional of the last item.",
    )
    .since(SINCE),
    Overload::new(
        "list_first",
        "list(V).first() -> optional_type(V)",
        |context, args| match args {
            [Value::List(list)] => optional(context, list.get(0)),
            _ => mismatch(),
        },
        "An optional of the first item.",
    )
    .since(SINCE),
    Overload::new(
        "optional_unwrap",
        "optional.unwrap(list(optional_type(V))) -> list(V)",
        unwrap,
        "The values of those optionals that have one.",
    )
    .since(SINCE),
    Overload::new(
        "optional_unwrapOpt",
        "list(optional_type(V)).unwrapOpt() -> list(V)",
        unwrap,
        "The values of those optionals that have one.",
    )
    .since(SINCE),
];

fn of<'a>(context: &Context<'a>, args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    let [value] = args else { return mismatch() };
    optional(context, Some(*value))
}

fn optional<'a>(context: &Context<'a>, value: Option<Value<'a>>) -> Result<Value<'a>, EvalError> {
    let kept = value.map(|value| context.keep(value)).transpose()?;
    Ok(Value::Optional(kept))
}

fn unwrap<'a>(context: &Context<'a>, args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    let [Value::List(list)] = args else { return mismatch() };
    if let Some(other) = list.iter().find(|item| !matches!(item, Value::Optional(_))) {
        let name = runtime_type::name_of(&other);
        return Err(EvalError::other(format!("value of type {name} is not optional")));
    }
    let mut values = Vec::with_capacity(list.len());
    for item in list.iter() {
        if let Value::Optional(Some(value)) = item {
            values.push(value.taken()?);
        }
    }
    context.slice(values.len(), values.into_iter()).map(|values| Value::List(List::Values(values)))
}

/// Seconds of 0001-01-01T00:00:00Z, the instant that Go counts from.
const ZERO_TIME: i64 = admit_apimachinery::go::instant::MIN_SECONDS;

/// Reports whether a value is the zero value of its type. A document's lists and objects with declared types have none.
fn is_zero(value: &Value<'_>) -> bool {
    match value {
        value if value.is_declared() => false,
        Value::Null => true,
        Value::Bool(b) => !b,
        Value::Int(i) => *i == 0,
        Value::Uint(u) => *u == 0,
        Value::Double(d) => *d == 0.0,
        Value::String(text) => text.is_empty(),
        Value::Bytes(bytes) => bytes.is_empty(),
        Value::Duration(span) => span.0 == 0,
        Value::Timestamp(instant) => (instant.seconds, instant.nanos) == (ZERO_TIME, 0),
        Value::List(list) => list.is_empty(),
        Value::Map(map) => map.is_empty(),
        Value::Opaque(Opaque::Empty) => true,
        Value::Opaque(Opaque::Made(made)) => made.fields().is_empty(),
        Value::Type(_) | Value::Optional(_) | Value::Opaque(_) => false,
    }
}
