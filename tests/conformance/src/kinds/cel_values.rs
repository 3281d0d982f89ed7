//! Converts the typed values and types of the CEL corpora to and from those of the engine.

use std::sync::Arc;

use admit_cel::{Duration, List, Map, Opaque, Type, Value};
use bumpalo::Bump;
use serde_json::{Value as Json, json};

/// The type of a text such as `map(string,list(int))`.
pub(super) fn read_type(text: &str) -> Option<Type> {
    let (name, arguments) = match text.split_once('(') {
        Some((name, rest)) => (name, rest.strip_suffix(')')?),
        None => (text, ""),
    };
    let of = |text: &str| read_type(text.trim()).map(Arc::new);
    Some(match name {
        "null_type" => Type::Null,
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "duration" | "google.protobuf.Duration" => Type::Duration,
        "timestamp" | "google.protobuf.Timestamp" => Type::Timestamp,
        "dyn" => Type::Dyn,
        "list" => Type::List(of(arguments)?),
        "optional_type" => Type::Optional(of(arguments)?),
        "wrapper" => Type::Wrapper(of(arguments)?),
        "type" => Type::Type(of(arguments)),
        "map" => {
            let (key, value) = arguments.split_once(',')?;
            Type::Map(of(key)?, of(value)?)
        }
        name => match name.strip_prefix("wrapper_") {
            Some(inner) => Type::Wrapper(of(inner)?),
            None => Type::Opaque(name.into()),
        },
    })
}

/// The value of `{"int":"5"}` and its like.
pub(super) fn read_value<'a>(arena: &'a Bump, json: &Json) -> Option<Value<'a>> {
    let (kind, content) = json.as_object()?.iter().next()?;
    let text = || content.as_str();
    Some(match kind.as_str() {
        "null" => Value::Null,
        "bool" => Value::Bool(content.as_bool()?),
        "int" => Value::Int(text()?.parse().ok()?),
        "uint" => Value::Uint(text()?.parse().ok()?),
        "double" => Value::Double(match text()? {
            "NaN" => f64::NAN,
            "Infinity" => f64::INFINITY,
            "-Infinity" => f64::NEG_INFINITY,
            number => number.parse().ok()?,
        }),
        "string" => Value::String(arena.alloc_str(text()?)),
        "bytes" => Value::Bytes(arena.alloc_slice_copy(&from_base64(text()?)?)),
        "duration" => Value::Duration(Duration(text()?.parse().ok()?)),
        "timestamp" => Value::Timestamp(text()?.parse().ok()?),
        "list" => {
            let items = content.as_array()?.iter().map(|item| read_value(arena, item));
            Value::List(List::Values(arena.alloc_slice_fill_iter(items.collect::<Option<Vec<_>>>()?)))
        }
        "map" => {
            let entry =
                |entry: &Json| Some((read_value(arena, entry.get(0)?)?, read_value(arena, entry.get(1)?)?));
            let entries = content.as_array()?.iter().map(entry).collect::<Option<Vec<_>>>()?;
            Value::Map(Map::Values(arena.alloc_slice_fill_iter(entries)))
        }
        "optional" if content.is_null() => Value::Optional(None),
        "optional" => Value::Optional(Some(arena.alloc(read_value(arena, content)?))),
        "type" => Value::Type(arena.alloc(read_type(text()?)?)),
        _ => return None,
    })
}

/// A value as the corpora write it; maps are sorted, since their order means nothing.
pub(super) fn write_value(value: &Value<'_>) -> Json {
    match value {
        Value::Null => json!({"null": true}),
        Value::Bool(b) => json!({ "bool": b }),
        Value::Int(i) => json!({"int": i.to_string()}),
        Value::Uint(u) => json!({"uint": u.to_string()}),
        Value::Double(d) => json!({"double": double_text(*d)}),
        Value::String(s) => json!({ "string": s }),
        Value::Bytes(b) => json!({"bytes": to_base64(b)}),
        Value::Duration(d) => json!({"duration": d.0.to_string()}),
        Value::Timestamp(t) => json!({"timestamp": t.to_string()}),
        Value::List(list) => json!({"list": list.iter().map(|item| write_value(&item)).collect::<Vec<_>>()}),
        Value::Map(map) => {
            let entries = map.iter().map(|(k, v)| json!([write_value(&k), write_value(&v)])).collect();
            json!({"map": sorted(entries)})
        }
        Value::Type(ty) => json!({"type": admit_cel::runtime_type::name(ty)}),
        Value::Optional(inner) => json!({"optional": inner.map_or(Json::Null, write_value)}),
        Value::Opaque(opaque) => write_opaque(opaque),
    }
}

/// A recorded value in the form of [`write_value`].
pub(super) fn normal(json: &Json) -> Json {
    let Some((kind, content)) = json.as_object().and_then(|object| object.iter().next()) else {
        return json.clone();
    };
    match (kind.as_str(), content) {
        ("list", Json::Array(items)) => json!({"list": items.iter().map(normal).collect::<Vec<_>>()}),
        ("map", Json::Array(entries)) => {
            let pair = |pair: &Json| Json::Array(pair.as_array().into_iter().flatten().map(normal).collect());
            json!({"map": sorted(entries.iter().map(pair).collect())})
        }
        ("optional", Json::Object(_)) => json!({"optional": normal(content)}),
        ("double", Json::String(text)) => match text.parse::<f64>() {
            Ok(double) => json!({"double": double_text(double)}),
            Err(_) => json.clone(),
        },
        _ => json.clone(),
    }
}

/// The items of a list and the entries of a map in an order of their own, for answers that depend on a random walk.
pub(super) fn as_set(json: &Json) -> Json {
    match json.get("list").and_then(Json::as_array) {
        Some(items) => json!({"list": sorted(items.clone())}),
        None => json.clone(),
    }
}

fn sorted(mut items: Vec<Json>) -> Vec<Json> {
    items.sort_by_key(Json::to_string);
    items
}

fn double_text(double: f64) -> String {
    if double.is_nan() {
        "NaN".to_owned()
    } else if double.is_infinite() {
        if double < 0.0 { "-Infinity".to_owned() } else { "Infinity".to_owned() }
    } else {
        format!("{double:e}")
    }
}

fn write_opaque(opaque: &Opaque<'_>) -> Json {
    match opaque {
        Opaque::Ip(ip) => json!({"ip": ip.to_string()}),
        Opaque::Cidr(ip, bits) => json!({"cidr": format!("{ip}/{bits}")}),
        Opaque::Quantity(quantity) => json!({"quantity": quantity.to_string()}),
        Opaque::Url(url) => json!({"url": url.text}),
        Opaque::Semver(semver) => json!({"semver": semver.text}),
        Opaque::Format(format) => json!({"format": format.name}),
        Opaque::Empty => json!({"message": "google.protobuf.Empty"}),
        Opaque::Authorization(value) => json!({"authorization": format!("{value:?}")}),
        Opaque::Made(value) => json!({"made": format!("{value:?}")}),
        Opaque::Lost(value) => json!({"lost": format!("{value:?}")}),
    }
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn from_base64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let (mut group, mut bits) = (0_u32, 0_u32);
    for c in text.bytes().filter(|c| *c != b'=') {
        let digit = u32::try_from(ALPHABET.iter().position(|a| *a == c)?).ok()?;
        group = (group << 6) | digit;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from((group >> bits) & 0xff).ok()?);
        }
    }
    Some(bytes)
}

fn to_base64(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let group = chunk
            .iter()
            .enumerate()
            .fold(0_usize, |group, (at, byte)| group | usize::from(*byte) << (16 - 8 * at));
        for at in 0..4 {
            let digit = (group >> (18 - 6 * at)) & 63;
            text.push(if at <= chunk.len() { char::from(ALPHABET[digit]) } else { '=' });
        }
    }
    text
}
