//! Formats values as the current string library does, without a locale: numbers without groups, exponents as `e+00`, and unquoted
//! strings in lists and maps.

use admit_apimachinery::go::{duration, float};

use super::{Clause, ValueError, number};
use crate::value::Value;
use crate::value::runtime_type;

/// The default number of digits after the point.
const PRECISION: usize = 6;

/// Digits after the point past which a double has only zeros.
const LAST_DIGIT: usize = 1_074;

/// Formats the value of a clause.
pub(super) fn fill(clause: Clause, value: &Value<'_>) -> Result<String, ValueError> {
    let unsuited = || unsuited(clause, runtime_type::name_of(value));
    match clause {
        Clause::Text => shown(value),
        Clause::Decimal => match value {
            Value::Int(_) | Value::Uint(_) | Value::Double(_) => shown(value),
            _ => Err(unsuited()),
        },
        Clause::Fixed(precision) => {
            let places = precision.unwrap_or(PRECISION).min(LAST_DIGIT);
            let number = number_of(value).ok_or_else(unsuited)?;
            Ok(special_name(number).map_or_else(|| float::fixed(number, places), str::to_owned))
        }
        Clause::Scientific(precision) => {
            let places = precision.unwrap_or(PRECISION).min(LAST_DIGIT);
            let number = number_of(value).ok_or_else(unsuited)?;
            let text = || float::scientific(number, Some(places));
            Ok(special_name(number).map_or_else(text, str::to_owned))
        }
        Clause::Binary | Clause::Octal | Clause::Hexadecimal { .. } => {
            number::in_base(clause, value).ok_or_else(unsuited)
        }
    }
}

/// The error for a value whose type the clause does not accept.
fn unsuited(clause: Clause, type_name: &str) -> ValueError {
    let rule = match clause {
        Clause::Text => return clause.unsuited(type_name),
        Clause::Decimal => "decimal clause can only be used on ints, uints, and doubles",
        Clause::Fixed(_) => "fixed-point clause can only be used on ints, uints, and doubles",
        Clause::Scientific(_) => "scientific clause can only be used on ints, uints, and doubles",
        Clause::Binary => "only ints, uints, and bools can be formatted as binary",
        Clause::Octal => "octal clause can only be used on ints and uints",
        Clause::Hexadecimal { .. } => "only ints, uints, bytes, and strings can be formatted as hex",
    };
    ValueError::Unsuited { rule, type_name: type_name.to_owned() }
}

fn number_of(value: &Value<'_>) -> Option<f64> {
    match value {
        Value::Double(double) => Some(*double),
        Value::Int(int) => Some(*int as f64),
        Value::Uint(uint) => Some(*uint as f64),
        _ => None,
    }
}

const fn special_name(value: f64) -> Option<&'static str> {
    if value.is_nan() {
        Some("NaN")
    } else if value.is_infinite() {
        Some(if value > 0.0 { "Infinity" } else { "-Infinity" })
    } else {
        None
    }
}

fn shown(value: &Value<'_>) -> Result<String, ValueError> {
    Ok(match value {
        Value::Null => "null".to_owned(),
        Value::Bool(bool) => bool.to_string(),
        Value::Int(int) => int.to_string(),
        Value::Uint(uint) => uint.to_string(),
        Value::Double(double) => special_name(*double).map_or_else(|| float::plain(*double), str::to_owned),
        Value::String(text) => (*text).to_owned(),
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::Duration(span) => format!("{}s", float::plain(duration::seconds(span.0))),
        Value::Timestamp(instant) => instant.to_string(),
        Value::Type(ty) => runtime_type::name(ty).to_owned(),
        Value::List(list) => {
            let items: Vec<_> = list.iter().map(|item| shown(&item)).collect::<Result<_, _>>()?;
            format!("[{}]", items.join(", "))
        }
        Value::Map(map) => {
            let entries = map.iter().map(|(key, value)| Ok((shown(&key)?, shown(&value)?)));
            let mut entries: Vec<(String, String)> = entries.collect::<Result<_, ValueError>>()?;
            entries.sort_by(|(x, _), (y, _)| x.cmp(y));
            let entries: Vec<_> = entries.into_iter().map(|(key, value)| format!("{key}: {value}")).collect();
            format!("{{{}}}", entries.join(", "))
        }
        Value::Optional(_) | Value::Opaque(_) => {
            return Err(Clause::Text.unsuited(runtime_type::name_of(value)));
        }
    })
}
