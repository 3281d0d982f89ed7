//! Implements `find` and `findAll`.

use regex_automata::meta::Regex;

use crate::cost::{Bounds, CallEstimate, Operand};
use crate::library::{Context, Overload, cost, mismatch, regex};
use crate::value::{EvalError, List, Value};
use Value::{Int, String};

pub(super) const ROWS: &[Overload] = &[
    Overload::new(
        "string_find_string",
        "string.find(string) -> string",
        |_, args| match args {
            [String(text), String(pattern)] => {
                let found = compile(pattern)?.find(text).and_then(|found| text.get(found.range()));
                Ok(String(found.unwrap_or_default()))
            }
            _ => mismatch(),
        },
        "The first match of a regular expression; empty without one.",
    )
    .costs_by_name(estimate, cost::match_regex),
    Overload::new(
        "string_find_all_string",
        "string.findAll(string) -> list(string)",
        |context, args| match args {
            [String(text), String(pattern)] => find_all(context, text, pattern, -1),
            _ => mismatch(),
        },
        "All matches of a regular expression.",
    )
    .costs_by_name(estimate, cost::match_regex),
    Overload::new(
        "string_find_all_string_int",
        "string.findAll(string, int) -> list(string)",
        |context, args| match args {
            [String(text), String(pattern), Int(limit)] => find_all(context, text, pattern, *limit),
            _ => mismatch(),
        },
        "The first so many matches of a regular expression; all if the number is negative.",
    )
    .costs_by_name(estimate, cost::match_regex),
];

fn compile(pattern: &str) -> Result<Regex, EvalError> {
    regex::compile(pattern).map_err(|error| EvalError::other(format!("Illegal regex: {error}")))
}

/// An empty match right behind another match does not count, as in Go.
fn find_all<'a>(
    context: &Context<'a>,
    text: &'a str,
    pattern: &str,
    limit: i64,
) -> Result<Value<'a>, EvalError> {
    let compiled = compile(pattern)?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let matches: Vec<_> =
        compiled.find_iter(text).take(limit).filter_map(|found| text.get(found.range())).collect();
    let items = context.slice(matches.len(), matches.into_iter().map(String))?;
    Ok(Value::List(List::Values(items)))
}

/// At worst every character is a match of its own.
fn estimate(args: &[Operand<'_>]) -> CallEstimate {
    let matching = cost::estimate_match_regex(args);
    CallEstimate::with_result(matching.cost, Bounds::new(0, cost::bounds_of(args, 0).max))
}
