//! Converts a value to JSON, as kube-apiserver converts results (`structpb`): times and durations as text, bytes as base64.

use admit_apimachinery::go::base64;
use bumpalo::Bump;
use serde_json::Value as Json;

use super::{EvalError, Opaque, Value};

impl<'a> Value<'a> {
    /// Converts the value to JSON as CEL does: bytes become base64, timestamps RFC 3339, durations seconds (`1.5s`), and keys of maps
    /// strings; an absent optional becomes null. Integers stay integers, whatever their size.
    ///
    /// ```
    /// use admit_cel::Value;
    /// use admit_cel::Duration;
    ///
    /// let arena = bumpalo::Bump::new();
    /// assert_eq!(Value::Bytes(b"hi").to_json(&arena)?, serde_json::json!("aGk="));
    /// assert_eq!(Value::Duration(Duration(1_500_000_000)).to_json(&arena)?, serde_json::json!("1.5s"));
    /// # Ok::<(), admit_cel::EvalError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If the value, or a part of it, has no JSON form, or a part of a document does not have its declared type.
    pub fn to_json(&self, arena: &'a Bump) -> Result<Json, EvalError> {
        Ok(match self {
            Self::Null | Self::Optional(None) => Json::Null,
            Self::Bool(b) => Json::Bool(*b),
            Self::Int(i) => Json::from(*i),
            Self::Uint(u) => Json::from(*u),
            Self::Double(d) => Json::from(*d),
            Self::String(s) => Json::from(*s),
            Self::List(list) => {
                let mut items = Vec::with_capacity(list.len());
                for at in 0..list.len() {
                    items.push(list.try_get(arena, at)?.unwrap_or(Self::Null).to_json(arena)?);
                }
                Json::Array(items)
            }
            Self::Map(map) => {
                let mut members = serde_json::Map::new();
                for entry in map.entries(Some(arena)) {
                    let (key, value) = entry?;
                    members.insert(key_text(&key)?, value.to_json(arena)?);
                }
                Json::Object(members)
            }
            Self::Optional(Some(inner)) => inner.to_json(arena)?,
            Self::Bytes(bytes) => Json::from(base64::encode(bytes)),
            Self::Duration(_) | Self::Timestamp(_) => Json::from(self.number_text().unwrap_or_default()),
            Self::Opaque(Opaque::Made(made)) => {
                let member =
                    |(name, value): &(&'a str, Self)| Ok(((*name).to_owned(), value.to_json(arena)?));
                Json::Object(made.fields().iter().map(member).collect::<Result<_, EvalError>>()?)
            }
            Self::Opaque(Opaque::Empty) => Json::Object(serde_json::Map::new()),
            Self::Type(_) | Self::Opaque(_) => return Err(no_json()),
        })
    }
}

fn key_text(key: &Value<'_>) -> Result<String, EvalError> {
    match key {
        Value::String(s) => Ok((*s).to_owned()),
        Value::Bool(b) => Ok(b.to_string()),
        Value::Int(i) => Ok(i.to_string()),
        Value::Uint(u) => Ok(u.to_string()),
        _ => Err(no_json()),
    }
}

fn no_json() -> EvalError {
    EvalError::Other("value has no JSON form".into())
}
