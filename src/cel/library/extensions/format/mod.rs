//! Implements `string.format(list)`: fills clauses such as `%s`, `%.2f`, `%x` from a list, with the output of cel-go's string library
//! version 2 for the locale `en_US`.

mod clause;
mod number;
mod plain;
mod text;

pub(crate) use clause::{Clause, Piece, TemplateError, ValueError, pieces};

use crate::cost::{CallEstimate, Operand};
use crate::library::{Context, Overload, Version, cost, mismatch};
use crate::value::{EvalError, List, Value, runtime_type};

pub(super) const ROWS: &[Overload] = &[Overload::new(
    "string_format",
    "string.format(list(dyn)) -> string",
    format,
    "The string with its clauses (`%s`, `%d`, `%f`, `%e`, `%b`, `%o`, `%x`, `%X`) filled from a list.",
)
.costs(estimate, cost::traverse_first)
.since(Version(1, 29))];

fn estimate(args: &[Operand<'_>]) -> CallEstimate {
    cost::estimate_traverse_first(args)
}

fn format<'a>(context: &Context<'a>, args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    filled(context, args, fill)
}

/// Formats like the current string library, without a locale.
pub(super) fn format_plain<'a>(context: &Context<'a>, args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    filled(context, args, plain::fill)
}

fn filled<'a>(
    context: &Context<'a>,
    args: &[Value<'a>],
    fill: fn(Clause, &Value<'_>) -> Result<String, ValueError>,
) -> Result<Value<'a>, EvalError> {
    let [Value::String(template), Value::List(values)] = args else { return mismatch() };
    let mut text = String::new();
    for piece in pieces(template, values.len()) {
        match piece.map_err(|error| EvalError::other(error.to_string()))? {
            Piece::Text(literal) => text.push_str(literal),
            Piece::Clause { index, clause } => {
                let value = value_at(*values, index)?;
                let filled = fill(clause, &value);
                text.push_str(
                    &filled.map_err(|cause| EvalError::other(format!("error during formatting: {cause}")))?,
                );
            }
        }
        context.reserve(text.len())?;
    }
    context.text(&text)
}

fn value_at<'a>(values: List<'a>, index: usize) -> Result<Value<'a>, EvalError> {
    values.get(index).ok_or_else(|| EvalError::other(format!("index {index} out of range")))
}

/// Formats the value of a clause.
fn fill(clause: Clause, value: &Value<'_>) -> Result<String, ValueError> {
    match clause {
        Clause::Text => text::shown(value),
        Clause::Decimal => text::decimal(value),
        Clause::Fixed(precision) => {
            let value = double_of(value).ok_or_else(|| clause.unsuited(runtime_type::name_of(value)))?;
            Ok(number::fixed(value, precision))
        }
        Clause::Scientific(width) => {
            let value = double_of(value).ok_or_else(|| clause.unsuited(runtime_type::name_of(value)))?;
            Ok(number::scientific(value, width))
        }
        Clause::Binary | Clause::Octal | Clause::Hexadecimal { .. } => {
            number::in_base(clause, value).ok_or_else(|| clause.unsuited(runtime_type::name_of(value)))
        }
    }
}

/// Returns doubles, and the values of the three strings that name one.
fn double_of(value: &Value<'_>) -> Option<f64> {
    match value {
        Value::Double(double) => Some(*double),
        Value::String("NaN") => Some(f64::NAN),
        Value::String("Infinity") => Some(f64::INFINITY),
        Value::String("-Infinity") => Some(f64::NEG_INFINITY),
        _ => None,
    }
}
