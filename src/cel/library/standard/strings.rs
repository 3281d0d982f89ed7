//! Implements the standard string predicates: `contains`, `startsWith`, `endsWith`, `matches`.

use crate::library::{Context, Overload, cost, mismatch, regex};
use crate::value::{EvalError, Value};
use Value::{Bool, String};

pub(super) const ROWS: &[Overload] = &[
    Overload::new(
        "contains_string",
        "string.contains(string) -> bool",
        |_, args| match args {
            [String(text), String(part)] => Ok(Bool(text.contains(part))),
            _ => mismatch(),
        },
        "Whether a string has another in it.",
    )
    .costs(cost::estimate_search, cost::search),
    Overload::new(
        "ends_with_string",
        "string.endsWith(string) -> bool",
        |_, args| match args {
            [String(text), String(end)] => Ok(Bool(text.ends_with(end))),
            _ => mismatch(),
        },
        "Whether a string ends with another.",
    )
    .costs(cost::estimate_traverse_second, cost::traverse_first),
    Overload::new(
        "starts_with_string",
        "string.startsWith(string) -> bool",
        |_, args| match args {
            [String(text), String(start)] => Ok(Bool(text.starts_with(start))),
            _ => mismatch(),
        },
        "Whether a string starts with another.",
    )
    .costs(cost::estimate_traverse_second, cost::traverse_first),
    // The global form is not in the books of costs: it costs one.
    Overload::new(
        "matches",
        "matches(string, string) -> bool",
        matches,
        "Whether a regular expression matches somewhere in a string.",
    ),
    Overload::new(
        "matches_string",
        "string.matches(string) -> bool",
        matches,
        "Whether a regular expression matches somewhere in a string.",
    )
    .costs(cost::estimate_match_regex, cost::match_regex),
];

fn matches<'a>(_: &Context<'a>, args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    let [String(text), String(pattern)] = args else { return mismatch() };
    Ok(Bool(regex::compile(pattern)?.is_match(text)))
}
