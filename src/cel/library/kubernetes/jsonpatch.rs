//! Implements `jsonpatch.escapeKey`, for mutating policies.

use crate::library::{Overload, cost, mismatch};
use crate::value::Value;

pub(in crate::library) const ROWS: &[Overload] = &[Overload::new(
    "string_jsonpatch_escapeKey_string",
    "jsonpatch.escapeKey(string) -> string",
    |context, args| match args {
        [Value::String(key)] => context.text(&key.replace('~', "~0").replace('/', "~1")),
        _ => mismatch(),
    },
    "The key with `~` and `/` escaped for a JSON pointer.",
)
.costs_by_name(cost::estimate_rewrite_first, cost::traverse_first)];
