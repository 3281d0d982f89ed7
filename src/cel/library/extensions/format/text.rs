//! Implements `%s` and `%d`: values as strings; inside lists and maps as CEL literals.

use admit_apimachinery::go::{duration, float, quote};

use super::{Clause, ValueError};
use crate::value::runtime_type;
use crate::value::{List, Map, Value};

/// A value as `%s` shows it.
pub(super) fn shown(value: &Value<'_>) -> Result<String, ValueError> {
    Ok(match value {
        Value::Null => "null".to_owned(),
        Value::Bool(bool) => bool.to_string(),
        Value::Int(int) => int.to_string(),
        Value::Uint(uint) => uint.to_string(),
        Value::Double(double) => float::general(*double),
        Value::String(text) => (*text).to_owned(),
        Value::Bytes(bytes) => {
            std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| ValueError::NotUtf8)?
        }
        Value::Duration(span) => format!("{}s", float::plain(duration::seconds(span.0))),
        Value::Timestamp(instant) => instant.to_string(),
        Value::Type(ty) => runtime_type::name(ty).to_owned(),
        Value::List(list) => list_literal(*list)?,
        Value::Map(map) => map_literal(*map)?,
        Value::Optional(_) | Value::Opaque(_) => {
            return Err(Clause::Text.unsuited(runtime_type::name_of(value)));
        }
    })
}

/// An integer as `%d` shows it.
pub(super) fn decimal(value: &Value<'_>) -> Result<String, ValueError> {
    match value {
        Value::Int(int) => Ok(int.to_string()),
        Value::Uint(uint) => Ok(uint.to_string()),
        other => Err(Clause::Decimal.unsuited(runtime_type::name_of(other))),
    }
}

/// A value inside a list or map.
fn literal(value: &Value<'_>) -> Result<String, ValueError> {
    Ok(match value {
        Value::String(text) => quote(text),
        Value::Bytes(_) => format!("b{}", quote(&shown(value)?)),
        Value::Double(double) if double.is_finite() => float::fixed(*double, 6),
        Value::Double(double) => quote(&float::plain(*double)),
        Value::Duration(_) => format!("duration({})", quote(&shown(value)?)),
        Value::Timestamp(_) => format!("timestamp({})", quote(&shown(value)?)),
        Value::Optional(_) | Value::Opaque(_) => {
            return Err(ValueError::NoText(runtime_type::name_of(value).to_owned()));
        }
        other => shown(other)?,
    })
}

fn list_literal(list: List<'_>) -> Result<String, ValueError> {
    let items: Vec<_> = list.iter().map(|item| literal(&item)).collect::<Result<_, _>>()?;
    Ok(format!("[{}]", items.join(", ")))
}

/// Formats a map, with entries sorted by the text of their keys.
fn map_literal(map: Map<'_>) -> Result<String, ValueError> {
    let mut entries = Vec::with_capacity(map.len());
    for (key, value) in map.iter() {
        let key = match key {
            Value::String(_) | Value::Bool(_) | Value::Int(_) | Value::Uint(_) => literal(&key)?,
            other => {
                return Err(ValueError::NoKeyText(runtime_type::name_of(&other).to_owned()));
            }
        };
        entries.push((key, literal(&value)?));
    }
    entries.sort_by(|(x, _), (y, _)| x.cmp(y));
    let entries: Vec<_> = entries.into_iter().map(|(key, value)| format!("{key}:{value}")).collect();
    Ok(format!("{{{}}}", entries.join(", ")))
}
