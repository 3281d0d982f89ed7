//! The order of values, as `<` and `sort` have it.

use std::cmp::Ordering;

use crate::value::{EvalError, Value};

/// The order of two values of comparable types.
///
/// # Errors
///
/// A NaN has no order; values of other types have none either.
pub fn compare(x: &Value<'_>, y: &Value<'_>) -> Result<Ordering, EvalError> {
    Ok(match (x, y) {
        (Value::Bool(x), Value::Bool(y)) => x.cmp(y),
        (Value::String(x), Value::String(y)) => x.cmp(y),
        (Value::Bytes(x), Value::Bytes(y)) => x.cmp(y),
        (Value::Duration(x), Value::Duration(y)) => x.cmp(y),
        (Value::Timestamp(x), Value::Timestamp(y)) => (x.seconds, x.nanos).cmp(&(y.seconds, y.nanos)),
        (x, y) if is_number(x) && is_number(y) => {
            compare_numbers(x, y).ok_or_else(|| EvalError::Other("NaN values cannot be ordered".into()))?
        }
        _ => return Err(EvalError::NoSuchOverload),
    })
}

const fn is_number(value: &Value<'_>) -> bool {
    matches!(value, Value::Int(_) | Value::Uint(_) | Value::Double(_))
}

/// Numbers by value, whatever their types; none for a NaN or what is no number. An integer beside a double is rounded
/// to a double first, as cel-go does.
pub(crate) fn compare_numbers(x: &Value<'_>, y: &Value<'_>) -> Option<Ordering> {
    match (x, y) {
        (Value::Int(x), Value::Int(y)) => Some(x.cmp(y)),
        (Value::Uint(x), Value::Uint(y)) => Some(x.cmp(y)),
        (Value::Double(x), Value::Double(y)) => x.partial_cmp(y),
        (Value::Int(x), Value::Uint(y)) => Some(i128::from(*x).cmp(&i128::from(*y))),
        (Value::Uint(x), Value::Int(y)) => Some(i128::from(*x).cmp(&i128::from(*y))),
        (Value::Int(x), Value::Double(y)) => (*x as f64).partial_cmp(y),
        (Value::Uint(x), Value::Double(y)) => (*x as f64).partial_cmp(y),
        (Value::Double(x), Value::Int(y)) => x.partial_cmp(&(*y as f64)),
        (Value::Double(x), Value::Uint(y)) => x.partial_cmp(&(*y as f64)),
        _ => None,
    }
}
