//! Implements indexing, `in` and `size`.

use crate::cost::{CallEstimate, Operand};
use crate::library::{Context, Overload, cost, mismatch, planned};
use crate::value::{EvalError, Map, Value};

pub(super) const ROWS: &[Overload] = &[
    Overload::new(
        "index_list",
        "_[_](list(A), int) -> A",
        planned,
        "The item at a position, counted from zero.",
    ),
    Overload::new("index_map", "_[_](map(A, B), A) -> B", planned, "The value of a key."),
    Overload::new("in_list", "@in(A, list(A)) -> bool", in_list, "Whether a list has an item.")
        .costs(estimate_in_list, |args, _| cost::size_of(args, 1)),
    Overload::new("in_map", "@in(A, map(A, B)) -> bool", in_map, "Whether a map has a key."),
    Overload::new("size_bytes", "size(bytes) -> int", size, "The number of bytes."),
    Overload::new("bytes_size", "bytes.size() -> int", size, "The number of bytes."),
    Overload::new("size_list", "size(list(A)) -> int", size, "The number of items."),
    Overload::new("list_size", "list(A).size() -> int", size, "The number of items."),
    Overload::new("size_map", "size(map(A, B)) -> int", size, "The number of entries."),
    Overload::new("map_size", "map(A, B).size() -> int", size, "The number of entries."),
    Overload::new("size_string", "size(string) -> int", size, "The number of code points."),
    Overload::new("string_size", "string.size() -> int", size, "The number of code points."),
];

fn size<'a>(_: &Context<'a>, args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    let [value] = args else { return mismatch() };
    i64::try_from(cost::size(value)).map(Value::Int).map_err(|_| EvalError::IntegerOverflow)
}

fn in_list<'a>(context: &Context<'a>, args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    let [item, Value::List(list)] = args else { return mismatch() };
    list.holds(context.arena, item).map(Value::Bool)
}

fn in_map<'a>(context: &Context<'a>, args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    let [key, Value::Map(map)] = args else { return mismatch() };
    if let (Value::String(name), Map::Host(host)) = (key, map) {
        return host.holds(name).map(Value::Bool);
    }
    // A document's keys are strings, which need no hashing.
    let key = if map.is_empty() || map.is_document() { key } else { key.as_key()? };
    // The value is looked at, too: one that is not of its declared type is an error.
    Ok(Value::Bool(map.try_get(context.arena, key)?.is_some()))
}

fn estimate_in_list(args: &[Operand<'_>]) -> CallEstimate {
    CallEstimate::of_cost(cost::bounds_of(args, 1).scaled(1.0))
}
