//! Implements cel-go's string library, version 2. Positions count code points; costs are Kubernetes'.

use crate::cost::{Bounds, CallEstimate, Operand, STRING_TRAVERSAL};
use crate::library::{Context, Overload, Version, cost, mismatch};
use crate::value::{EvalError, List, Value};
use Value::{Int, String};

/// Version 0 of the library, without `format` and `quote`, was there before.
const VERSION_2: Version = Version(1, 29);

pub(super) const ROWS: &[Overload] = &[
    Overload::new(
        "string_char_at_int",
        "string.charAt(int) -> string",
        char_at,
        "The character at a position; empty at the end.",
    ),
    Overload::new(
        "string_index_of_string",
        "string.indexOf(string) -> int",
        |_, args| match args {
            [String(text), String(part)] => index_of(text, part, 0),
            _ => mismatch(),
        },
        "The position of the first occurrence of a string, or -1.",
    )
    .costs_by_name(cost::estimate_scan, cost::scan),
    Overload::new(
        "string_index_of_string_int",
        "string.indexOf(string, int) -> int",
        |_, args| match args {
            [String(text), String(part), Int(from)] => index_of(text, part, *from),
            _ => mismatch(),
        },
        "The position of the first occurrence from a position on, or -1.",
    )
    .costs_by_name(cost::estimate_scan, cost::scan),
    Overload::new(
        "string_last_index_of_string",
        "string.lastIndexOf(string) -> int",
        |_, args| match args {
            [String(text), String(part)] => last_index_of(text, part),
            _ => mismatch(),
        },
        "The position of the last occurrence of a string, or -1.",
    )
    .costs_by_name(cost::estimate_scan, cost::scan),
    Overload::new(
        "string_last_index_of_string_int",
        "string.lastIndexOf(string, int) -> int",
        |_, args| match args {
            [String(text), String(part), Int(from)] => last_index_from(text, part, *from),
            _ => mismatch(),
        },
        "The position of the last occurrence that starts at or before a position, or -1.",
    )
    .costs_by_name(cost::estimate_scan, cost::scan),
    Overload::new(
        "string_lower_ascii",
        "string.lowerAscii() -> string",
        |context, args| match args {
            [String(text)] => context.text(&text.to_ascii_lowercase()),
            _ => mismatch(),
        },
        "The string with ASCII letters in lower case.",
    )
    .costs_by_name(cost::estimate_rewrite_first, cost::traverse_first),
    Overload::new(
        "string_replace_string_string",
        "string.replace(string, string) -> string",
        |context, args| match args {
            [String(text), String(old), String(new)] => replace(context, text, (old, new), None),
            _ => mismatch(),
        },
        "The string with every occurrence of one string replaced by another.",
    )
    .costs_by_name(estimate_replace, cost::traverse_first_twice),
    Overload::new(
        "string_replace_string_string_int",
        "string.replace(string, string, int) -> string",
        |context, args| match args {
            [String(text), String(old), String(new), Int(limit)] => {
                replace(context, text, (old, new), usize::try_from(*limit).ok())
            }
            _ => mismatch(),
        },
        "The same, for the first so many occurrences; all if the number is negative.",
    )
    .costs_by_name(estimate_replace, cost::traverse_first_twice),
    Overload::new(
        "string_split_string",
        "string.split(string) -> list(string)",
        |context, args| match args {
            [String(text), String(separator)] => split(context, text, separator, None),
            _ => mismatch(),
        },
        "The parts between occurrences of a separator; with an empty one, the characters.",
    )
    .costs_by_name(estimate_split, cost::traverse_first_twice),
    Overload::new(
        "string_split_string_int",
        "string.split(string, int) -> list(string)",
        |context, args| match args {
            [String(text), String(separator), Int(limit)] => {
                split(context, text, separator, usize::try_from(*limit).ok())
            }
            _ => mismatch(),
        },
        "The same, in at most so many parts; without limit if the number is negative.",
    )
    .costs_by_name(estimate_split, cost::traverse_first_twice),
    Overload::new(
        "string_substring_int",
        "string.substring(int) -> string",
        |_, args| match args {
            [String(text), Int(start)] => byte_offset(text, *start)
                .and_then(|start| text.get(start..))
                .map(String)
                .ok_or_else(|| out_of_range(*start)),
            _ => mismatch(),
        },
        "The string from a position on.",
    )
    .costs_by_name(cost::estimate_rewrite_first, cost::traverse_first),
    Overload::new(
        "string_substring_int_int",
        "string.substring(int, int) -> string",
        substring,
        "The string from one position to before another.",
    )
    .costs_by_name(cost::estimate_rewrite_first, cost::traverse_first),
    Overload::new(
        "string_trim",
        "string.trim() -> string",
        |_, args| match args {
            [String(text)] => Ok(String(text.trim())),
            _ => mismatch(),
        },
        "The string without white space at its ends.",
    )
    .costs_by_name(cost::estimate_rewrite_first, cost::traverse_first),
    Overload::new(
        "string_upper_ascii",
        "string.upperAscii() -> string",
        |context, args| match args {
            [String(text)] => context.text(&text.to_ascii_uppercase()),
            _ => mismatch(),
        },
        "The string with ASCII letters in upper case.",
    )
    .costs_by_name(cost::estimate_rewrite_first, cost::traverse_first),
    Overload::new(
        "strings_quote",
        "strings.quote(string) -> string",
        quote,
        "The string as a quoted CEL literal.",
    )
    .costs(estimate_quote, cost::traverse_first)
    .since(VERSION_2),
    Overload::new(
        "list_join",
        "list(string).join() -> string",
        |context, args| match args {
            [Value::List(list)] => join(context, *list, ""),
            _ => mismatch(),
        },
        "The strings in a row.",
    )
    .costs_by_name(estimate_join, charge_join),
    Overload::new(
        "list_join_string",
        "list(string).join(string) -> string",
        |context, args| match args {
            [Value::List(list), String(separator)] => join(context, *list, separator),
            _ => mismatch(),
        },
        "The strings in a row, with a separator between them.",
    )
    .costs_by_name(estimate_join, charge_join),
];

pub(super) fn out_of_range(position: i64) -> EvalError {
    EvalError::other(format!("index out of range: {position}"))
}

/// Returns the byte offset of a code point; the end for the position after the last.
fn byte_offset(text: &str, position: i64) -> Option<usize> {
    let position = usize::try_from(position).ok()?;
    let starts = text.char_indices().map(|(at, _)| at).chain(std::iter::once(text.len()));
    starts.into_iter().nth(position)
}

fn position<'a>(text: &str, byte: Option<usize>) -> Result<Value<'a>, EvalError> {
    let before = byte.and_then(|byte| text.get(..byte));
    Ok(Int(before.map_or(-1, |before| i64::try_from(before.chars().count()).unwrap_or(i64::MAX))))
}

fn char_at<'a>(_: &Context<'a>, args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    let [String(text), Int(index)] = args else { return mismatch() };
    let rest =
        byte_offset(text, *index).and_then(|start| text.get(start..)).ok_or_else(|| out_of_range(*index))?;
    let length = rest.chars().next().map_or(0, char::len_utf8);
    Ok(String(rest.get(..length).unwrap_or_default()))
}

pub(super) fn index_of<'a>(text: &str, part: &str, from: i64) -> Result<Value<'a>, EvalError> {
    if part.is_empty() {
        return Ok(Int(from));
    }
    if from < 0 {
        return Err(out_of_range(from));
    }
    let found =
        byte_offset(text, from).and_then(|start| Some(start.saturating_add(text.get(start..)?.find(part)?)));
    position(text, found)
}

fn last_index_of<'a>(text: &str, part: &str) -> Result<Value<'a>, EvalError> {
    if part.is_empty() { position(text, Some(text.len())) } else { position(text, text.rfind(part)) }
}

pub(super) fn last_index_from<'a>(text: &str, part: &str, from: i64) -> Result<Value<'a>, EvalError> {
    if part.is_empty() {
        return Ok(Int(from));
    }
    if from < 0 {
        return Err(out_of_range(from));
    }
    // A position at or beyond the end finds nothing, not even an occurrence that ends there.
    let start = byte_offset(text, from).filter(|start| *start < text.len());
    let end = start.map(|start| text.floor_char_boundary(start.saturating_add(part.len())));
    position(text, end.and_then(|end| text.get(..end)).and_then(|text| text.rfind(part)))
}

fn substring<'a>(_: &Context<'a>, args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    let [String(text), Int(start), Int(end)] = args else { return mismatch() };
    if start > end {
        return Err(EvalError::other(format!("invalid substring range. start: {start}, end: {end}")));
    }
    let from = byte_offset(text, *start).ok_or_else(|| out_of_range(*start))?;
    let to = byte_offset(text, *end).ok_or_else(|| out_of_range(*end))?;
    Ok(String(text.get(from..to).unwrap_or_default()))
}

fn replace<'a>(
    context: &Context<'a>,
    text: &'a str,
    (old, new): (&str, &str),
    limit: Option<usize>,
) -> Result<Value<'a>, EvalError> {
    let limit = limit.unwrap_or(usize::MAX);
    if old == new || limit == 0 {
        return Ok(String(text));
    }
    let count = text.matches(old).take(limit).count();
    let growth = new.len().saturating_sub(old.len()).saturating_mul(count);
    context.reserve(text.len().saturating_add(growth))?;
    context.text(&text.replacen(old, new, limit))
}

fn split<'a>(
    context: &Context<'a>,
    text: &'a str,
    separator: &str,
    limit: Option<usize>,
) -> Result<Value<'a>, EvalError> {
    let limit = limit.unwrap_or(usize::MAX);
    let parts: Vec<&'a str> = match (separator, limit) {
        (_, 0) => Vec::new(),
        ("", limit) => characters(text, limit),
        (separator, limit) => text.splitn(limit, separator).collect(),
    };
    let items = context.slice(parts.len(), parts.into_iter().map(String))?;
    Ok(Value::List(List::Values(items)))
}

/// At most `limit` parts of one character, the last with all that is left.
fn characters(text: &str, limit: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = if parts.len().saturating_add(1) == limit { rest.len() } else { first.len_utf8() };
        let (part, after) = rest.split_at_checked(length).unwrap_or((rest, ""));
        parts.push(part);
        rest = after;
    }
    parts
}

fn join<'a>(context: &Context<'a>, list: List<'a>, separator: &str) -> Result<Value<'a>, EvalError> {
    let mut parts = Vec::with_capacity(list.len().saturating_mul(2));
    for item in list.iter() {
        let String(text) = item else {
            return Err(EvalError::other(format!("join: invalid input: {}", item.plain())));
        };
        if !parts.is_empty() {
            parts.push(separator);
        }
        parts.push(text);
    }
    context.joined(&parts)
}

fn quote<'a>(context: &Context<'a>, args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    let [String(text)] = args else { return mismatch() };
    let mut quoted = std::string::String::with_capacity(text.len().saturating_add(2));
    quoted.push('"');
    for c in text.chars() {
        match c {
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{b}' => quoted.push_str("\\v"),
            '\\' => quoted.push_str("\\\\"),
            '"' => quoted.push_str("\\\""),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    context.text(&quoted)
}

/// Every character may be escaped, and two quotes are added; the greatest size wraps as in cel-go.
fn estimate_quote(args: &[Operand<'_>]) -> CallEstimate {
    let size = cost::bounds_of(args, 0);
    let result = Bounds::new(size.min.wrapping_add(2), size.max.wrapping_mul(2).wrapping_add(2));
    CallEstimate::with_result(size.scaled(STRING_TRAVERSAL), result)
}

fn charge_join(_: &[Value<'_>], result: &Value<'_>) -> u64 {
    crate::cost::scale(cost::size(result), 2.0 * STRING_TRAVERSAL)
}

fn estimate_join(args: &[Operand<'_>]) -> CallEstimate {
    let Some(list) = args.first() else { return CallEstimate::ONE };
    let length = list.size_or_unbounded();
    let mut size = match list.ty {
        crate::types::Type::List(_) => length.times(list.items.unwrap_or(Bounds::UNBOUNDED)),
        _ => Bounds::ZERO,
    };
    if args.len() > 1 {
        let separators = Bounds::new(length.min.saturating_sub(1), length.max.saturating_sub(1));
        size = size.plus(cost::bounds_of(args, 1).times(separators));
    }
    CallEstimate::with_result(size.scaled(STRING_TRAVERSAL), size)
}

/// An empty separator splits into characters; a literal limit bounds the number of parts.
fn estimate_split(args: &[Operand<'_>]) -> CallEstimate {
    let size = cost::bounds_of(args, 0);
    let max = args.get(2).and_then(Operand::integer).map_or(size.max, i64::cast_unsigned);
    CallEstimate::with_result(size.scaled(2.0 * STRING_TRAVERSAL), Bounds::new(0, max))
}

fn estimate_replace(args: &[Operand<'_>]) -> CallEstimate {
    let (size, old, new) = (cost::bounds_of(args, 0), cost::bounds_of(args, 1), cost::bounds_of(args, 2));
    // The maximum number of replacements in the result, and the maximum length of the string kept beside them.
    let (most, kept_at_most) = match old.min {
        0 => (size.max.saturating_add(1), size.max),
        least if new.max <= least => (0, size.max),
        least => (divide_up(size.max, least), 0),
    };
    let (least, kept_at_least) = match old.max {
        0 => (size.min.saturating_add(1), size.min),
        most if most <= new.min => (0, size.min),
        most => (divide_up(size.min, most), 0),
    };
    let result = Bounds::new(least, most).times(new).plus(Bounds::new(kept_at_least, kept_at_most));
    CallEstimate::with_result(size.scaled(2.0 * STRING_TRAVERSAL), result)
}

/// Divides in double arithmetic, as the reference does.
#[expect(clippy::cast_possible_truncation, reason = "a float cast saturates")]
fn divide_up(size: u64, by: u64) -> u64 {
    (size as f64 / by as f64).ceil() as u64
}
