//! Orders values: within a type, and across the number types.

use std::cmp::Ordering;

use super::{EvalError, Opaque, Value};

impl Value<'_> {
    /// Compares two values.
    ///
    /// # Errors
    ///
    /// `no such overload` for values without a common order, and cel-go's error for a NaN.
    pub fn compare(&self, other: &Value<'_>) -> Result<Ordering, EvalError> {
        match (self, other) {
            (Value::Bool(a), Value::Bool(b)) => Ok(a.cmp(b)),
            (Value::Int(a), Value::Int(b)) => Ok(a.cmp(b)),
            (Value::Uint(a), Value::Uint(b)) => Ok(a.cmp(b)),
            (Value::Int(a), Value::Uint(b)) => Ok(i128::from(*a).cmp(&i128::from(*b))),
            (Value::Uint(a), Value::Int(b)) => Ok(i128::from(*a).cmp(&i128::from(*b))),
            (Value::Double(a), Value::Double(b)) => a.partial_cmp(b).ok_or_else(nan),
            (Value::Int(a), Value::Double(b)) => compare_int_double(*a, *b).ok_or_else(nan),
            (Value::Double(a), Value::Int(b)) => {
                compare_int_double(*b, *a).map(Ordering::reverse).ok_or_else(nan)
            }
            (Value::Uint(a), Value::Double(b)) => compare_uint_double(*a, *b).ok_or_else(nan),
            (Value::Double(a), Value::Uint(b)) => {
                compare_uint_double(*b, *a).map(Ordering::reverse).ok_or_else(nan)
            }
            // cel-go checks for NaN before the other's type.
            (Value::Double(a), _) if a.is_nan() => Err(nan()),
            (Value::String(a), Value::String(b)) => Ok(a.cmp(b)),
            (Value::Bytes(a), Value::Bytes(b)) => Ok(a.cmp(b)),
            (Value::Duration(a), Value::Duration(b)) => Ok(a.cmp(b)),
            (Value::Timestamp(a), Value::Timestamp(b)) => Ok((a.seconds, a.nanos).cmp(&(b.seconds, b.nanos))),
            _ => Err(EvalError::NoSuchOverload),
        }
    }

    /// Whether a look-up of another value finds this key in a map: they are equal, no digit is lost between number types, and an
    /// integer does not look up a double.
    #[must_use]
    pub(crate) fn is_found_by(&self, other: &Value<'_>) -> bool {
        match (self, other) {
            (Value::Double(_), Value::Int(_) | Value::Uint(_)) => false,
            (Value::Opaque(Opaque::Ip(a)), Value::Opaque(Opaque::Ip(b))) => a == b,
            (Value::Opaque(Opaque::Cidr(a, m)), Value::Opaque(Opaque::Cidr(b, n))) => (a, m) == (b, n),
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::String(a), Value::String(b)) => a == b,
            (Value::Double(a), Value::Double(b)) => a == b,
            (Value::Null, Value::Null) => true,
            (Value::Duration(a), Value::Duration(b)) => a == b,
            (Value::Timestamp(a), Value::Timestamp(b)) => a == b,
            _ => matches!((self.whole_number(), other.whole_number()), (Some(a), Some(b)) if a == b),
        }
    }

    /// Looks up this key: first one of its own type, then the other integer type; a double first as int, then as uint. `find` returns
    /// the entry whose key its argument accepts.
    pub(super) fn seek<T>(&self, find: impl Fn(&dyn Fn(&Value<'_>) -> bool) -> Option<T>) -> Option<T> {
        let found = find(&|known| {
            std::mem::discriminant(known) == std::mem::discriminant(self) && known.is_found_by(self)
        });
        match self {
            Value::Double(_) => found
                .or_else(|| find(&|known| matches!(known, Value::Int(_)) && known.is_found_by(self)))
                .or_else(|| find(&|known| matches!(known, Value::Uint(_)) && known.is_found_by(self))),
            Value::Int(_) | Value::Uint(_) => found.or_else(|| find(&|known| known.is_found_by(self))),
            _ => found,
        }
    }

    /// Returns the value as a map key, for insertion or look-up.
    ///
    /// # Errors
    ///
    /// For values whose representation in cel-go has no hash.
    pub(crate) fn as_key(&self) -> Result<&Self, EvalError> {
        match self {
            Value::Bytes(_) | Value::Opaque(Opaque::Semver(_)) => {
                let text = format!("runtime error: hash of unhashable type {}", self.go_type());
                Err(EvalError::Internal(text.into()))
            }
            _ => Ok(self),
        }
    }

    /// The number, where it has no fraction and fits a 64-bit integer of either sign.
    #[must_use]
    pub(crate) fn whole_number(&self) -> Option<i128> {
        match self {
            Value::Int(i) => Some(i128::from(*i)),
            Value::Uint(u) => Some(i128::from(*u)),
            Value::Double(d) if d.trunc() == *d && d.abs() <= TWO_POW_64 => {
                #[expect(clippy::cast_possible_truncation, reason = "whole, and far within the range")]
                let whole = *d as i128;
                (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&whole).then_some(whole)
            }
            _ => None,
        }
    }
}

const TWO_POW_63: f64 = 9_223_372_036_854_775_808.0;
const TWO_POW_64: f64 = 18_446_744_073_709_551_616.0;

/// cel-go compares within the range of the integer after turning the integer into a double. None for a NaN.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "cel-go loses the same digits")]
pub(super) fn compare_int_double(int: i64, double: f64) -> Option<Ordering> {
    if double < -TWO_POW_63 {
        return Some(Ordering::Greater);
    }
    if double > TWO_POW_63 {
        return Some(Ordering::Less);
    }
    (int as f64).partial_cmp(&double)
}

/// The same for an unsigned integer.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "cel-go loses the same digits")]
pub(super) fn compare_uint_double(uint: u64, double: f64) -> Option<Ordering> {
    if double < 0.0 {
        return Some(Ordering::Greater);
    }
    if double > TWO_POW_64 {
        return Some(Ordering::Less);
    }
    (uint as f64).partial_cmp(&double)
}

fn nan() -> EvalError {
    EvalError::Other("NaN values cannot be ordered".into())
}
