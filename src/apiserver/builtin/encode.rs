//! Encodes objects and lists of built-in kinds as protobuf (`application/vnd.kubernetes.protobuf`), with the field
//! numbers of the field tables: the counterpart of `protobuf`. Fields that JSON omits because they are empty are written
//! with their zero value, as Go writes them.

use admit_apimachinery::go;
use jiff::Timestamp;
use serde_json::Value;

use super::model::{Tables, TypeId, TypeRef};
use super::protobuf::MAGIC;
use crate::interrupt;

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// The protobuf wire types.
#[derive(Clone, Copy)]
enum Wire {
    Varint = 0,
    Fixed64 = 1,
    Bytes = 2,
}

/// Encodes the document with its envelope; None for a kind without field tables.
#[must_use]
pub(crate) fn encode(tables: &Tables, document: &Value) -> Option<Vec<u8>> {
    let text = |field: &str| document.get(field).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let known = |kind: &str| {
        tables.kind(group, version, kind).or_else(|| tables.by_openapi_name(&format!("{META}.{kind}")))
    };
    let message = match (known(kind), kind.strip_suffix("List").and_then(known)) {
        (Some(id), _) => Encoder { tables }.message(id, document),
        (None, Some(item)) => list(tables, item, document)?,
        (None, None) => return None,
    };
    let mut meta = Vec::new();
    field(&mut meta, 1, api_version.as_bytes());
    field(&mut meta, 2, kind.as_bytes());
    let mut envelope = MAGIC.to_vec();
    field(&mut envelope, 1, &meta);
    field(&mut envelope, 2, &message);
    field(&mut envelope, 3, b"");
    field(&mut envelope, 4, b"");
    Some(envelope)
}

/// Encodes an event of a watch, preceded by its length.
#[must_use]
pub(crate) fn watch_event(tables: &Tables, kind: &str, object: &Value) -> Option<Vec<u8>> {
    let mut extension = Vec::new();
    field(&mut extension, 1, &encode(tables, object)?);
    let mut event = Vec::new();
    field(&mut event, 1, kind.as_bytes());
    field(&mut event, 2, &extension);
    let length = u32::try_from(event.len()).ok()?;
    Some([&length.to_be_bytes()[..], &event].concat())
}

/// Encodes a list: every list has its metadata in field 1 and its items in field 2.
fn list(tables: &Tables, item: TypeId, document: &Value) -> Option<Vec<u8>> {
    let encoder = Encoder { tables };
    let meta = tables.by_openapi_name(&format!("{META}.ListMeta"))?;
    let mut out = Vec::new();
    field(&mut out, 1, &encoder.message(meta, document.get("metadata").unwrap_or(&Value::Null)));
    for object in document.get("items").and_then(Value::as_array).into_iter().flatten() {
        field(&mut out, 2, &encoder.message(item, object));
    }
    Some(out)
}

struct Encoder<'t> {
    tables: &'t Tables,
}

impl Encoder<'_> {
    fn message(&self, id: TypeId, object: &Value) -> Vec<u8> {
        let mut out = Vec::new();
        // Fields are written in the order of their numbers, whatever their order in the table.
        let mut fields: Vec<_> = self.tables.get(id).fields.iter().collect();
        fields.sort_unstable_by_key(|declared| declared.number);
        let is_list = self.tables.get(id).is_list;
        for declared in fields {
            match &declared.kind {
                // A type that is a list in JSON is a message with one field.
                kind if is_list => self.value(kind, declared.number, object, &mut out),
                // The fields of an embedded type are inlined in JSON, and a message of their own here.
                TypeRef::Message(embedded) if declared.name.is_empty() => {
                    field(&mut out, declared.number, &self.message(*embedded, object));
                }
                kind => match object.get(declared.name).filter(|value| !value.is_null()) {
                    Some(value) => self.value(kind, declared.number, value, &mut out),
                    None => self.absent(kind, declared.number, &mut out),
                },
            }
        }
        out
    }

    /// Writes the zero value of an absent field, if Go's type has one; pointers, lists and maps have none.
    fn absent(&self, kind: &TypeRef, number: u32, out: &mut Vec<u8>) {
        match kind {
            TypeRef::Int32
            | TypeRef::Int64
            | TypeRef::Bool
            | TypeRef::Float64
            | TypeRef::String
            | TypeRef::Enum(_)
            | TypeRef::IntOrString
            | TypeRef::Message(_) => self.value(kind, number, &Value::Null, out),
            TypeRef::Time | TypeRef::MicroTime | TypeRef::Raw(_) => field(out, number, b""),
            TypeRef::Pointer(_)
            | TypeRef::Bytes
            | TypeRef::Quantity
            | TypeRef::SchemaOrArray(_)
            | TypeRef::SchemaOrBool(_)
            | TypeRef::SchemaOrStrings(_)
            | TypeRef::List(_)
            | TypeRef::Map(_) => {}
        }
    }

    fn value(&self, kind: &TypeRef, number: u32, value: &Value, out: &mut Vec<u8>) {
        interrupt::checkpoint();
        let text = || value.as_str().unwrap_or_default();
        match kind {
            TypeRef::Pointer(inner) => self.value(inner, number, value, out),
            TypeRef::String | TypeRef::Enum(_) => field(out, number, text().as_bytes()),
            TypeRef::Bytes => field(out, number, &go::json::bytes(text()).unwrap_or_default()),
            TypeRef::Int32 | TypeRef::Int64 => whole(out, number, value.as_i64().unwrap_or_default()),
            TypeRef::Bool => whole(out, number, i64::from(value.as_bool().unwrap_or_default())),
            TypeRef::Float64 => {
                key(out, number, Wire::Fixed64);
                out.extend(value.as_f64().unwrap_or_default().to_le_bytes());
            }
            TypeRef::Time | TypeRef::MicroTime => field(out, number, &time(text())),
            TypeRef::Quantity => field(out, number, &single(1, text().as_bytes())),
            TypeRef::IntOrString => field(out, number, &int_or_string(value)),
            TypeRef::Raw(_) => field(out, number, &single(1, value.to_string().as_bytes())),
            TypeRef::Message(id) => field(out, number, &self.message(*id, value)),
            TypeRef::SchemaOrArray(id) => field(out, number, &self.schema_or(*id, (1, 2), value)),
            TypeRef::SchemaOrBool(id) => field(out, number, &self.schema_or(*id, (2, 1), value)),
            TypeRef::SchemaOrStrings(id) => field(out, number, &self.schema_or(*id, (1, 2), value)),
            TypeRef::List(inner) => {
                for item in value.as_array().into_iter().flatten() {
                    self.value(inner, number, item, out);
                }
            }
            TypeRef::Map(inner) => {
                for (name, member) in value.as_object().into_iter().flatten() {
                    let mut entry = single(1, name.as_bytes());
                    match &**inner {
                        // A list inside a map is wrapped in a message.
                        list @ TypeRef::List(_) => {
                            let mut items = Vec::new();
                            self.value(list, 1, member, &mut items);
                            field(&mut entry, 2, &items);
                        }
                        inner => self.value(inner, 2, member, &mut entry),
                    }
                    field(out, number, &entry);
                }
            }
        }
    }

    /// Writes a schema as the first field number, or the alternative to it as the second.
    fn schema_or(&self, id: TypeId, (schema, other): (u32, u32), value: &Value) -> Vec<u8> {
        let mut out = Vec::new();
        match value {
            Value::Bool(allowed) => whole(&mut out, other, i64::from(*allowed)),
            Value::Array(items) => {
                for item in items {
                    match item {
                        Value::String(name) => field(&mut out, other, name.as_bytes()),
                        nested => field(&mut out, other, &self.message(id, nested)),
                    }
                }
            }
            object => {
                if schema == 2 {
                    // A schema implies that additional properties are allowed.
                    whole(&mut out, other, 1);
                }
                field(&mut out, schema, &self.message(id, object));
            }
        }
        out
    }
}

fn time(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    if let Ok(time) = text.parse::<Timestamp>() {
        whole(&mut out, 1, time.as_second());
        whole(&mut out, 2, i64::from(time.subsec_nanosecond()));
    }
    out
}

fn int_or_string(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    whole(&mut out, 1, i64::from(value.is_string()));
    whole(&mut out, 2, value.as_i64().unwrap_or_default());
    field(&mut out, 3, value.as_str().unwrap_or_default().as_bytes());
    out
}

fn single(number: u32, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() + 4);
    field(&mut out, number, bytes);
    out
}

fn field(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    key(out, number, Wire::Bytes);
    varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn whole(out: &mut Vec<u8>, number: u32, value: i64) {
    key(out, number, Wire::Varint);
    varint(out, value.cast_unsigned());
}

fn key(out: &mut Vec<u8>, number: u32, wire: Wire) {
    varint(out, u64::from(number) << 3 | wire as u64);
}

/// Writes a varint: seven bits a byte, the lowest first; the eighth bit says that more follow.
fn varint(out: &mut Vec<u8>, mut value: u64) {
    loop {
        let [low, ..] = value.to_le_bytes();
        value >>= 7;
        if value == 0 {
            out.push(low & 0x7f);
            return;
        }
        out.push(low | 0x80);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::builtin::{protobuf, tables};

    #[test]
    fn what_is_written_is_read_again() {
        let pod = json!({
            "kind": "Pod", "apiVersion": "v1",
            "metadata": {"name": "p", "creationTimestamp": "2024-05-06T07:08:09Z", "labels": {"a": "b"},
                "managedFields": [{"manager": "m", "fieldsV1": {"f:spec": {}}}]},
            "spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": "500m"}},
                "livenessProbe": {"httpGet": {"port": "web"}}}], "terminationGracePeriodSeconds": -1, "hostNetwork": true}
        });
        let secret =
            json!({"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "s"}, "data": {"k": "AAH/"}});
        let review = json!({
            "kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "metadata": {},
            "spec": {"user": "u", "extra": {"scopes": ["a", "b"]}}
        });
        for object in [pod, secret, review] {
            let bytes = encode(tables(), &object).expect("a known kind");
            let read = protobuf::decode(tables(), &bytes).expect("what was written");
            assert!(is_in(&object, &read), "{object} in {read}");
        }
    }

    /// Whether `part` is contained in `whole`, which may also have empty values.
    fn is_in(part: &Value, whole: &Value) -> bool {
        match (part, whole) {
            (Value::Object(part), Value::Object(whole)) => {
                part.iter().all(|(name, part)| whole.get(name).is_some_and(|whole| is_in(part, whole)))
            }
            (Value::Array(part), Value::Array(whole)) => {
                part.len() == whole.len() && part.iter().zip(whole).all(|(part, whole)| is_in(part, whole))
            }
            (part, whole) => part == whole,
        }
    }

    #[test]
    fn lists_and_events_wrap_objects() {
        let list = json!({
            "kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": "7"},
            "items": [{"metadata": {"name": "a"}, "data": {"k": "v"}}]
        });
        let bytes = encode(tables(), &list).expect("a known kind");
        let expected = [
            &MAGIC[..],
            b"\x0a\x13\x0a\x02v1\x12\x0dConfigMapList",
            b"\x12\x26\x0a\x07\x0a\x00\x12\x017\x1a\x00",
            b"\x12\x1b\x0a\x11\x0a\x01a\x12\x00\x1a\x00\x22\x00\x2a\x00\x32\x00\x38\x00\x42\x00",
            b"\x12\x06\x0a\x01k\x12\x01v",
            b"\x1a\x00\x22\x00",
        ];
        assert_eq!(bytes, expected.concat());
        let map = json!({"kind": "ConfigMap", "apiVersion": "v1"});
        let event = watch_event(tables(), "ADDED", &map).expect("a known kind");
        assert_eq!(event.get(..4), Some(&(u32::try_from(event.len() - 4).expect("short")).to_be_bytes()[..]));
        assert_eq!(encode(tables(), &json!({"kind": "Widget", "apiVersion": "example.dev/v1"})), None);
    }
}
