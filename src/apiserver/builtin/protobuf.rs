//! Reads protobuf request bodies (`application/vnd.kubernetes.protobuf`) of built-in kinds into JSON.
//!
//! A body is four magic bytes and an envelope that names the kind and holds the object's message. Fields are identified by
//! the numbers of the field tables; unknown numbers are skipped, as protobuf requires. `encode` writes responses.

mod wire;

use std::cell::Cell;

use admit_apimachinery::go;
use admit_apimachinery::weight::{self, Budget, TooHeavy};
use admit_policy::json::{self, JsonError};
use jiff::Timestamp;
use serde_json::{Map, Value};

use self::wire::{Members, Reader, Wire, text};
use super::model::{Field, Tables, TypeId, TypeRef};

/// The magic bytes at the beginning of every body.
pub const MAGIC: [u8; 4] = [0x6b, 0x38, 0x73, 0x00];

/// Messages nested deeper are refused; of the built-in kinds only recursive schemas come near.
const MAX_DEPTH: usize = 64;

/// Why a body cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtobufError {
    #[error("empty data")]
    NoData,
    #[error("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")]
    NoPrefix,
    #[error("empty body")]
    Empty,
    #[error("unexpected EOF")]
    Truncated,
    #[error("proto: integer overflow")]
    Varint,
    #[error("proto: illegal wireType {0}")]
    WireType(u8),
    #[error("proto: wrong wireType = {found} for field {field}")]
    FieldWireType { found: u8, field: &'static str },
    #[error("string field contains invalid UTF-8")]
    Utf8,
    #[error("message is nested too deeply")]
    Depth,
    #[error(transparent)]
    TooHeavy(#[from] TooHeavy),
    #[error("no kind \"{kind}\" is registered for version \"{api_version}\"")]
    UnknownKind { kind: String, api_version: String },
}

/// Decodes the object of a body, with its `apiVersion` and `kind`.
///
/// # Errors
/// When the body has no valid envelope, names no built-in kind, or is truncated.
pub fn decode(tables: &Tables, body: &[u8]) -> Result<Value, ProtobufError> {
    if body.is_empty() {
        return Err(ProtobufError::NoData);
    }
    let mut envelope = Reader { rest: body.strip_prefix(&MAGIC).ok_or(ProtobufError::NoPrefix)? };
    if envelope.rest.is_empty() {
        return Err(ProtobufError::Empty);
    }
    let (mut api_version, mut kind) = (String::new(), String::new());
    let mut raw: &[u8] = &[];
    while let Some((number, wire)) = envelope.next()? {
        match (number, wire) {
            (1, Wire::Bytes(bytes)) => {
                let mut meta = Reader { rest: bytes };
                while let Some((number, wire)) = meta.next()? {
                    match (number, wire) {
                        (1, Wire::Bytes(bytes)) => api_version = text(bytes)?,
                        (2, Wire::Bytes(bytes)) => kind = text(bytes)?,
                        _ => {}
                    }
                }
            }
            (2, Wire::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    // Options have one type, which is registered for every group and version.
    let id = tables
        .kind(group, version, &kind)
        .or_else(|| tables.by_openapi_name(&format!("io.k8s.apimachinery.pkg.apis.meta.v1.{kind}")))
        .ok_or_else(|| ProtobufError::UnknownKind { kind: kind.clone(), api_version: api_version.clone() })?;
    let mut object = Map::new();
    object.insert("kind".into(), kind.into());
    object.insert("apiVersion".into(), api_version.into());
    let spent = Spent { tables, budget: Cell::new(Budget::of_text(body.len())) };
    message(&spent, id, raw, 0, &mut object)?;
    Ok(Value::Object(object))
}

/// The field tables, and the remaining memory budget for the body's values.
struct Spent<'t> {
    tables: &'t Tables,
    budget: Cell<Budget>,
}

impl Spent<'_> {
    /// Takes `bytes` from the budget, before a value is stored.
    fn spend(&self, bytes: usize) -> Result<(), TooHeavy> {
        let mut budget = self.budget.get();
        budget.take(bytes)?;
        self.budget.set(budget);
        Ok(())
    }

    fn text(&self, bytes: &[u8]) -> Result<String, ProtobufError> {
        self.spend(weight::of_text(bytes.len()))?;
        text(bytes)
    }
}

fn message(
    spent: &Spent<'_>,
    id: TypeId,
    bytes: &[u8],
    depth: usize,
    object: &mut Map<String, Value>,
) -> Result<(), ProtobufError> {
    if depth > MAX_DEPTH {
        return Err(ProtobufError::Depth);
    }
    let fields = &spent.tables.get(id).fields;
    spent.spend(weight::of_map())?;
    let mut reader = Reader { rest: bytes };
    while let Some((number, wire)) = reader.next()? {
        let Some(field) = fields.iter().find(|field| field.number == number) else { continue };
        let context = Context { spent, field, depth };
        match &field.kind {
            TypeRef::Message(embedded) if field.name.is_empty() => {
                message(spent, *embedded, context.bytes(wire)?, depth + 1, object)?;
            }
            kind => context.add(kind, wire, object)?,
        }
    }
    Ok(())
}

struct Context<'t> {
    spent: &'t Spent<'t>,
    field: &'t Field,
    depth: usize,
}

impl Context<'_> {
    /// Sets the field, or appends to it if it is a list or a map.
    fn add(
        &self,
        kind: &TypeRef,
        wire: Wire<'_>,
        object: &mut Map<String, Value>,
    ) -> Result<(), ProtobufError> {
        match kind {
            TypeRef::Pointer(inner) => self.add(inner, wire, object),
            TypeRef::List(inner) => {
                self.spent.spend(weight::of_item())?;
                let item = self.value(inner, wire)?;
                let list = object.entry(self.field.name).or_insert_with(|| Value::Array(Vec::new()));
                if let Value::Array(items) = list {
                    items.push(item);
                }
                Ok(())
            }
            TypeRef::Map(inner) => {
                let (key, value) = self.entry(inner, self.bytes(wire)?)?;
                self.spent.spend(weight::of_member(&key))?;
                let map = object.entry(self.field.name).or_insert_with(|| Value::Object(Map::new()));
                if let Value::Object(members) = map {
                    members.insert(key, value);
                }
                Ok(())
            }
            single => {
                if !object.contains_key(self.field.name) {
                    self.spent.spend(weight::of_member(self.field.name))?;
                }
                object.insert(self.field.name.to_owned(), self.value(single, wire)?);
                Ok(())
            }
        }
    }

    fn entry(&self, inner: &TypeRef, bytes: &[u8]) -> Result<(String, Value), ProtobufError> {
        let (mut key, mut value) = (String::new(), Value::Null);
        let mut reader = Reader { rest: bytes };
        while let Some((number, wire)) = reader.next()? {
            match number {
                1 => key = text(self.bytes(wire)?)?,
                2 => value = self.value(inner, wire)?,
                _ => {}
            }
        }
        Ok((key, value))
    }

    fn value(&self, kind: &TypeRef, wire: Wire<'_>) -> Result<Value, ProtobufError> {
        Ok(match kind {
            TypeRef::Pointer(inner) => self.value(inner, wire)?,
            TypeRef::String | TypeRef::Enum(_) => self.spent.text(self.bytes(wire)?)?.into(),
            TypeRef::Bytes => {
                let bytes = self.bytes(wire)?;
                self.spent.spend(weight::of_text(bytes.len()))?;
                go::base64::encode(bytes).into()
            }
            TypeRef::Int32 | TypeRef::Int64 => self.varint(wire)?.cast_signed().into(),
            TypeRef::Bool => (self.varint(wire)? != 0).into(),
            TypeRef::Float64 => match wire {
                Wire::Fixed64(bits) => f64::from_bits(bits).into(),
                other => return Err(self.wrong(&other)),
            },
            TypeRef::Time => time(self.bytes(wire)?, "%Y-%m-%dT%H:%M:%SZ")?,
            TypeRef::MicroTime => time(self.bytes(wire)?, "%Y-%m-%dT%H:%M:%S.%6fZ")?,
            TypeRef::Quantity => Members::of(self.bytes(wire)?)?.text(1)?.into(),
            TypeRef::IntOrString => {
                let members = Members::of(self.bytes(wire)?)?;
                if members.number(1) == 0 { members.number(2).into() } else { members.text(3)?.into() }
            }
            TypeRef::Raw(_) => self.raw(&Members::of(self.bytes(wire)?)?)?,
            TypeRef::Message(id) => {
                let mut object = Map::new();
                message(self.spent, *id, self.bytes(wire)?, self.depth + 1, &mut object)?;
                Value::Object(object)
            }
            TypeRef::SchemaOrArray(id) => self.schema_or(*id, 1, 2, self.bytes(wire)?)?,
            TypeRef::SchemaOrBool(id) => self.schema_or(*id, 2, 1, self.bytes(wire)?)?,
            TypeRef::SchemaOrStrings(id) => self.schema_or(*id, 1, 2, self.bytes(wire)?)?,
            // A list inside a map is wrapped in a message.
            TypeRef::List(inner) => {
                let mut items = Vec::new();
                let mut reader = Reader { rest: self.bytes(wire)? };
                while let Some((_, wire)) = reader.next()? {
                    self.spent.spend(weight::of_item())?;
                    items.push(self.value(inner, wire)?);
                }
                Value::Array(items)
            }
            TypeRef::Map(inner) => {
                let (key, value) = self.entry(inner, self.bytes(wire)?)?;
                Value::Object(Map::from_iter([(key, value)]))
            }
        })
    }

    /// Reads a schema from one field number, or its alternative from the other: schemas, names or a boolean.
    fn schema_or(&self, id: TypeId, schema: u32, other: u32, bytes: &[u8]) -> Result<Value, ProtobufError> {
        let mut others = Vec::new();
        let mut reader = Reader { rest: bytes };
        while let Some((number, wire)) = reader.next()? {
            if number == schema {
                return self.value(&TypeRef::Message(id), wire);
            }
            match wire {
                Wire::Varint(allowed) if number == other => return Ok((allowed != 0).into()),
                Wire::Bytes(_)
                    if number == other && matches!(self.field.kind.pointee(), TypeRef::SchemaOrArray(_)) =>
                {
                    self.spent.spend(weight::of_item())?;
                    others.push(self.value(&TypeRef::Message(id), wire)?);
                }
                Wire::Bytes(name) if number == other => {
                    self.spent.spend(weight::of_item())?;
                    others.push(self.spent.text(name)?.into());
                }
                _ => {}
            }
        }
        Ok(Value::Array(others))
    }

    /// Reads JSON from bytes in the message; null if it is invalid.
    fn raw(&self, members: &Members<'_>) -> Result<Value, ProtobufError> {
        match json::parse(members.bytes(1)) {
            Ok(document) => {
                self.spent.spend(weight::of(&document.value))?;
                Ok(document.value)
            }
            Err(JsonError::TooHeavy(limit)) => Err(limit.into()),
            Err(JsonError::Syntax(_)) => Ok(Value::Null),
        }
    }

    fn bytes<'b>(&self, wire: Wire<'b>) -> Result<&'b [u8], ProtobufError> {
        match wire {
            Wire::Bytes(bytes) => Ok(bytes),
            other => Err(self.wrong(&other)),
        }
    }

    fn varint(&self, wire: Wire<'_>) -> Result<u64, ProtobufError> {
        match wire {
            Wire::Varint(number) => Ok(number),
            other => Err(self.wrong(&other)),
        }
    }

    fn wrong(&self, wire: &Wire<'_>) -> ProtobufError {
        let found = match wire {
            Wire::Varint(_) => 0,
            Wire::Fixed64(_) => 1,
            Wire::Bytes(_) => 2,
            Wire::Fixed32 => 5,
        };
        ProtobufError::FieldWireType { found, field: self.field.name }
    }
}

/// Formats seconds and nanoseconds since 1970 by `form`, a form of RFC 3339; an empty message is null.
fn time(bytes: &[u8], form: &str) -> Result<Value, ProtobufError> {
    let members = Members::of(bytes)?;
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let nanos = i32::try_from(members.number(2)).unwrap_or_default();
    Ok(Timestamp::new(members.number(1), nanos)
        .map_or(Value::Null, |time| time.strftime(form).to_string().into()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::builtin::{decode, tables};

    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        let length = u8::try_from(bytes.len()).expect("a short field");
        [&[number << 3 | 2, length], bytes].concat()
    }

    fn body(object: &[u8]) -> Vec<u8> {
        let meta = [field(1, b"v1"), field(2, b"ConfigMap")].concat();
        [MAGIC.to_vec(), field(1, &meta), field(2, object)].concat()
    }

    #[test]
    fn a_configmap_is_read_by_its_field_numbers() {
        let metadata = [field(1, b"conf"), field(2, b""), field(8, b"")].concat();
        let entry = [field(1, b"key"), field(2, b"value")].concat();
        let object = [field(1, &metadata), field(2, &entry)].concat();
        let read = decode(tables(), &body(&object)).expect("a body");
        let id = tables().kind("", "v1", "ConfigMap").expect("the ConfigMap kind");
        let canonical = decode::decode(tables(), id, read).expect("decodes").value;
        assert_eq!(
            canonical,
            json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "conf"}, "data": {"key": "value"}})
        );
    }

    #[test]
    fn what_is_cut_off_or_foreign_is_refused() {
        assert_eq!(decode(tables(), b"{}"), Err(ProtobufError::NoPrefix));
        let whole = body(&field(1, b"\x0a\x04conf"));
        let cut = whole.get(..whole.len() - 1).expect("a shorter body");
        assert_eq!(decode(tables(), cut), Err(ProtobufError::Truncated));
    }
}
