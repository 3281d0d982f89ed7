//! `fmt`'s `%v` of the values that can be keys or list items in messages.

use super::{duration, float, timestamp};
use crate::value::Value;

/// The text of `%v`.
pub(crate) fn plain(value: &Value<'_>) -> String {
    match value {
        Value::Null => "0".to_owned(),
        Value::Bool(b) => b.to_string(),
        Value::Int(i) => i.to_string(),
        Value::Uint(u) => u.to_string(),
        Value::Double(d) => float::general(*d),
        Value::String(text) => (*text).to_owned(),
        Value::Bytes(bytes) => {
            let numbers: Vec<_> = bytes.iter().map(u8::to_string).collect();
            format!("[{}]", numbers.join(" "))
        }
        Value::Duration(span) => duration::format(span.0),
        Value::Timestamp(instant) => timestamp::format(*instant),
        Value::Type(ty) => crate::library::runtime_type::name(ty).to_owned(),
        Value::List(_) | Value::Map(_) | Value::Optional(_) | Value::Opaque(_) => {
            crate::library::runtime_type::name_of(value).to_owned()
        }
    }
}
