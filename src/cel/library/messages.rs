//! Implements the protocol buffer messages that every cel-go environment can construct, Kubernetes' too: wrappers, times and JSON
//! values. All but the empty message are converted: `google.protobuf.Int64Value{value: 1}` is the int 1, and `google.protobuf.Struct{}`
//! an empty map.
//!
//! One row per message: its type, its fields, and the value that they construct.

use admit_apimachinery::go::{base64, quote};

use super::Context;
use crate::value::{Duration, Entries, EvalError, List, Map, Opaque, Timestamp, Value};

/// A message that expressions may construct.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) name: &'static str,
    /// The type, in CEL notation.
    pub(crate) ty: &'static str,
    fields: &'static [(&'static str, &'static str)],
    make: for<'a> fn(&Context<'a>, &Fields<'_, 'a>) -> Result<Value<'a>, EvalError>,
}

/// The fields that an expression sets, in the order of the text; of several with one name the last counts.
pub(crate) struct Fields<'f, 'a> {
    message: &'static str,
    set: &'f [(&'f str, Value<'a>)],
}

/// The message of a full name.
pub(crate) fn message(name: &str) -> Option<&'static Message> {
    MESSAGES.iter().find(|message| message.name == name)
}

/// The value of an enumeration's constant, by its full name.
pub(crate) fn enumerator(name: &str) -> Option<i64> {
    (name == "google.protobuf.NullValue.NULL_VALUE").then_some(0)
}

impl Message {
    /// The field of a name, by its name and its type in CEL notation.
    pub(crate) fn field(&self, name: &str) -> Option<(&'static str, &'static str)> {
        self.fields.iter().find(|(known, _)| *known == name).copied()
    }

    /// What the message is with these fields.
    ///
    /// # Errors
    ///
    /// When a value does not fit its field, in cel-go's words.
    pub(crate) fn make<'a>(
        &self,
        context: &Context<'a>,
        set: &[(&str, Value<'a>)],
    ) -> Result<Value<'a>, EvalError> {
        (self.make)(context, &Fields { message: self.name, set })
    }
}

const JSON_FIELDS: &[(&str, &str)] = &[
    ("null_value", "int"),
    ("number_value", "double"),
    ("string_value", "string"),
    ("bool_value", "bool"),
    ("struct_value", "map(string, dyn)"),
    ("list_value", "list(dyn)"),
];

const TIME_FIELDS: &[(&str, &str)] = &[("seconds", "int"), ("nanos", "int")];

const MESSAGES: &[Message] = &[
    wrapper("google.protobuf.BoolValue", "wrapper(bool)", &[("value", "bool")], |_, fields| {
        Ok(fields.get("value").unwrap_or(Value::Bool(false)))
    }),
    wrapper("google.protobuf.BytesValue", "wrapper(bytes)", &[("value", "bytes")], |_, fields| {
        Ok(fields.get("value").unwrap_or(Value::Bytes(b"")))
    }),
    wrapper("google.protobuf.DoubleValue", "wrapper(double)", &[("value", "double")], |_, fields| {
        Ok(fields.get("value").unwrap_or(Value::Double(0.0)))
    }),
    wrapper("google.protobuf.FloatValue", "wrapper(double)", &[("value", "double")], |_, fields| {
        Ok(Value::Double(fields.double("value").map_or(0.0, single_precision)))
    }),
    wrapper("google.protobuf.Int64Value", "wrapper(int)", &[("value", "int")], |_, fields| {
        Ok(Value::Int(fields.int("value")))
    }),
    wrapper("google.protobuf.Int32Value", "wrapper(int)", &[("value", "int")], |_, fields| {
        fields.int32("value").map(|value| Value::Int(i64::from(value)))
    }),
    wrapper("google.protobuf.UInt64Value", "wrapper(uint)", &[("value", "uint")], |_, fields| {
        Ok(Value::Uint(fields.uint("value")))
    }),
    wrapper("google.protobuf.UInt32Value", "wrapper(uint)", &[("value", "uint")], |_, fields| {
        let value = fields.uint("value");
        let fits = u32::try_from(value).is_ok();
        if fits { Ok(Value::Uint(value)) } else { Err(fields.refuse("value", &EvalError::UnsignedOverflow)) }
    }),
    wrapper("google.protobuf.StringValue", "wrapper(string)", &[("value", "string")], |_, fields| {
        Ok(fields.get("value").unwrap_or(Value::String("")))
    }),
    wrapper("google.protobuf.Duration", "duration", TIME_FIELDS, |_, fields| {
        let nanos = i128::from(fields.int("seconds")).saturating_mul(1_000_000_000);
        let nanos = nanos.saturating_add(i128::from(fields.int32("nanos")?));
        let end = if nanos < 0 { i64::MIN } else { i64::MAX };
        Ok(Value::Duration(Duration(i64::try_from(nanos).unwrap_or(end))))
    }),
    wrapper("google.protobuf.Timestamp", "timestamp", TIME_FIELDS, |_, fields| {
        let nanos = i64::from(fields.int32("nanos")?);
        let seconds = fields.int("seconds").wrapping_add(nanos.div_euclid(1_000_000_000));
        let nanos = u32::try_from(nanos.rem_euclid(1_000_000_000)).unwrap_or_default();
        Ok(Value::Timestamp(Timestamp { seconds, nanos, offset: 0 }))
    }),
    wrapper("google.protobuf.Value", "dyn", JSON_FIELDS, |context, fields| match fields.set.last() {
        None | Some(("null_value", _)) => Ok(Value::Null),
        Some((name, value)) => fields.json(context, name, value),
    }),
    wrapper(
        "google.protobuf.Struct",
        "map(string, dyn)",
        &[("fields", "map(string, dyn)")],
        |context, fields| match fields.get("fields") {
            Some(map) => fields.json(context, "fields", &map),
            None => Ok(Value::Map(Map::EMPTY)),
        },
    ),
    wrapper("google.protobuf.ListValue", "list(dyn)", &[("values", "list(dyn)")], |context, fields| {
        match fields.get("values") {
            Some(list) => fields.json(context, "values", &list),
            None => Ok(Value::List(List::EMPTY)),
        }
    }),
    wrapper("google.protobuf.Empty", "google.protobuf.Empty", &[], |_, _| Ok(Value::Opaque(Opaque::Empty))),
    wrapper("google.protobuf.Any", "dyn", &[("type_url", "string"), ("value", "bytes")], |_, fields| {
        let url = match fields.get("type_url") {
            Some(Value::String(url)) => url,
            _ => "",
        };
        let problem = if url.is_empty() { "invalid empty type URL" } else { "not found" };
        Err(EvalError::other(format!(
            "anypb.UnmarshalNew() failed for type {}: proto: {problem}",
            quote(url)
        )))
    }),
];

const fn wrapper(
    name: &'static str,
    ty: &'static str,
    fields: &'static [(&'static str, &'static str)],
    make: for<'a> fn(&Context<'a>, &Fields<'_, 'a>) -> Result<Value<'a>, EvalError>,
) -> Message {
    Message { name, ty, fields, make }
}

impl<'a> Fields<'_, 'a> {
    fn get(&self, name: &str) -> Option<Value<'a>> {
        self.set.iter().rev().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    fn int(&self, name: &str) -> i64 {
        match self.get(name) {
            Some(Value::Int(value)) => value,
            _ => 0,
        }
    }

    fn uint(&self, name: &str) -> u64 {
        match self.get(name) {
            Some(Value::Uint(value)) => value,
            _ => 0,
        }
    }

    fn double(&self, name: &str) -> Option<f64> {
        match self.get(name) {
            Some(Value::Double(value)) => Some(value),
            _ => None,
        }
    }

    fn int32(&self, name: &str) -> Result<i32, EvalError> {
        i32::try_from(self.int(name)).map_err(|_| self.refuse(name, &EvalError::IntegerOverflow))
    }

    fn json(&self, context: &Context<'a>, name: &str, value: &Value<'a>) -> Result<Value<'a>, EvalError> {
        json_value(context, value).map_err(|error| match error.is_final() {
            true => error,
            false => self.refuse(name, &error),
        })
    }

    fn refuse(&self, field: &str, error: &EvalError) -> EvalError {
        let message = self.message;
        EvalError::other(format!("field type conversion error for {message}.{field} value type: {error}"))
    }
}

/// Converts a value as through the JSON form of protocol buffers: numbers become doubles, those that a double cannot hold strings,
/// times strings, and bytes base64.
fn json_value<'a>(context: &Context<'a>, value: &Value<'a>) -> Result<Value<'a>, EvalError> {
    Ok(match value {
        Value::Null | Value::Bool(_) | Value::Double(_) | Value::String(_) => *value,
        Value::Int(i) if i.unsigned_abs() <= MAX_EXACT => Value::Double(*i as f64),
        Value::Int(i) => context.text(&i.to_string())?,
        Value::Uint(u) if *u <= MAX_EXACT => Value::Double(*u as f64),
        Value::Uint(u) => context.text(&u.to_string())?,
        Value::Bytes(bytes) => context.text(&base64::encode(bytes))?,
        Value::Duration(_) | Value::Timestamp(_) => context.text(&value.number_text().unwrap_or_default())?,
        Value::List(list) => {
            let items = list.to_slice(context.arena)?.iter().map(|item| json_value(context, item));
            let items: Vec<_> = items.collect::<Result<_, _>>()?;
            Value::List(List::Values(context.slice(items.len(), items.into_iter())?))
        }
        Value::Map(map) => {
            let mut entries = Entries::new(context.arena);
            entries.reserve(map.len())?;
            for entry in map.entries(Some(context.arena)) {
                let (key, value) = entry?;
                let Value::String(_) = key else {
                    let name = crate::value::runtime_type::name_of(&key);
                    return Err(EvalError::other(format!(
                        "unsupported type conversion from '{name}' to string"
                    )));
                };
                entries.push(key, json_value(context, &value)?)?;
            }
            Value::Map(entries.finish()?)
        }
        Value::Optional(Some(inner)) => json_value(context, inner)?,
        Value::Optional(None) => return Err(EvalError::other("optional.none() dereference")),
        Value::Opaque(Opaque::Empty) => Value::Map(Map::EMPTY),
        Value::Type(_) | Value::Opaque(_) => {
            let name = crate::value::runtime_type::name_of(value);
            return Err(EvalError::other(format!("type conversion not supported for '{name}'")));
        }
    })
}

/// The greatest whole number below which a double holds every one.
const MAX_EXACT: u64 = (1 << 53) - 1;

#[expect(clippy::cast_possible_truncation, reason = "rounding to single precision is what the field does")]
const fn single_precision(value: f64) -> f64 {
    value as f32 as f64
}
