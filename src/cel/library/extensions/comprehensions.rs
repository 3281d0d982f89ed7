//! Implements the functions in expansions of two-variable macros.

use crate::library::{Context, Overload, Version, mismatch};
use crate::value::{Entries, EvalError, Map, Value};

const SINCE: Version = Version(1, 32);

pub(super) const ROWS: &[Overload] = &[
    Overload::new(
        "@mapInsert_map_key_value",
        "cel.@mapInsert(map(K, V), K, V) -> map(K, V)",
        insert,
        "A map with one entry more; an error if it has the key.",
    )
    .since(SINCE),
    Overload::new(
        "@mapInsert_map_map",
        "cel.@mapInsert(map(K, V), map(K, V)) -> map(K, V)",
        merge,
        "A map with the entries of another added; an error if both have a key.",
    )
    .since(SINCE),
];

fn insert<'a>(context: &Context<'a>, args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    let [Value::Map(map), key, value] = args else { return mismatch() };
    extended(context, map, &[(*key, *value)])
}

fn merge<'a>(context: &Context<'a>, args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    let [Value::Map(map), Value::Map(more)] = args else { return mismatch() };
    let more = context.slice(more.len(), more.iter())?;
    extended(context, map, more)
}

fn extended<'a>(
    context: &Context<'a>,
    map: &Map<'a>,
    more: &[(Value<'a>, Value<'a>)],
) -> Result<Value<'a>, EvalError> {
    if let Some((key, _)) = more.iter().find(|(key, _)| map.get(key).is_some()) {
        return Err(already_there(key));
    }
    let mut entries = Entries::new(context.arena);
    entries.reserve(map.len().saturating_add(more.len()))?;
    for (key, value) in map.iter().chain(more.iter().copied()) {
        entries.push(key, value)?;
    }
    entries.finish().map(Value::Map)
}

/// The error of inserting a key twice.
#[must_use]
pub(crate) fn already_there(key: &Value<'_>) -> EvalError {
    EvalError::other(format!("insert failed: key {} already exists", key.plain()))
}
