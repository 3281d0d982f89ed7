//! Declares `&&`, `||`, `!`, `?:`, equality. The planner handles all but `!` itself; their rows are for the checker and the estimator.

use crate::cost::{Bounds, CallEstimate, Operand};
use crate::library::{Overload, cost, mismatch, planned};
use crate::value::Value;

pub(super) const ROWS: &[Overload] = &[
    Overload::new(
        "conditional",
        "_?_:_(bool, A, A) -> A",
        planned,
        "Yields the second operand if the first is true, else the third.",
    ),
    Overload::new(
        "logical_and",
        "_&&_(bool, bool) -> bool",
        planned,
        "True if both operands are; a false operand decides even if the other is an error.",
    ),
    Overload::new(
        "logical_or",
        "_||_(bool, bool) -> bool",
        planned,
        "True if one operand is; a true operand decides even if the other is an error.",
    ),
    Overload::new(
        "logical_not",
        "!_(bool) -> bool",
        |_, args| match args {
            [Value::Bool(b)] => Ok(Value::Bool(!b)),
            _ => mismatch(),
        },
        "Negates a boolean.",
    ),
    Overload::new(
        "not_strictly_false",
        "@not_strictly_false(bool) -> bool",
        |_, args| Ok(Value::Bool(!matches!(args, [Value::Bool(false)]))),
        "True unless the operand is false; the condition under which a comprehension goes on.",
    ),
    Overload::new(
        "equals",
        "_==_(A, A) -> bool",
        planned,
        "Compares two values for equality; numbers by value across their types.",
    )
    .costs_by_name(estimate_equality, equality),
    Overload::new("not_equals", "_!=_(A, A) -> bool", planned, "The opposite of `==`.")
        .costs_by_name(cost::estimate_compare, cost::compare),
];

/// Kubernetes' own values compare at constant cost; all others up to the end of the shorter.
fn equality(args: &[Value<'_>], result: &Value<'_>) -> u64 {
    match args.first() {
        Some(Value::Opaque(_)) => 1,
        _ => cost::compare(args, result),
    }
}

/// Longest name of a format.
const MAX_FORMAT_NAME: u64 = 64;

fn estimate_equality(args: &[Operand<'_>]) -> CallEstimate {
    let [left, right] = args else { return CallEstimate::ONE };
    let crate::types::Type::Opaque(name) = left.ty else { return cost::estimate_compare(args) };
    if left.ty != right.ty {
        return cost::estimate_compare(args);
    }
    match &**name {
        "kubernetes.NamedFormat" => {
            CallEstimate::of_cost(Bounds::new(1, MAX_FORMAT_NAME).scaled(crate::cost::STRING_TRAVERSAL))
        }
        "kubernetes.URL" => {
            let size = right.size.unwrap_or(Bounds::ONE);
            CallEstimate::of_cost(Bounds::new(1, size.max).scaled(crate::cost::STRING_TRAVERSAL))
        }
        name if name.starts_with("kubernetes.") || name.starts_with("net.") => CallEstimate::ONE,
        _ => cost::estimate_compare(args),
    }
}
