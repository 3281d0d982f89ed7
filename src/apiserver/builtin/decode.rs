//! Decodes a JSON object as a built-in kind and encodes it again as the API server's typed encoder would: unknown
//! members are reported and dropped, nulls and empty values are dropped or kept by each field's rule, members are in
//! the table's order, map keys are sorted, times and quantities have their canonical form. The conversion is done in
//! place, so that a large object is not in memory twice.
//!
//! Not done here: members that repeat (`repeated` joins them), defaults, validation of values.

mod parts;
mod repeated;
mod schemas;
mod words;
mod written;

use std::collections::BTreeMap;

use admit_apimachinery::bounded::Paths;
use admit_apimachinery::weight::{self, Budget};
use serde_json::{Map, Number, Value};

pub(crate) use self::repeated::{Joined, joined};
pub use self::words::DecodeError;
use self::written::{written_form, zero};
use super::model::{Field, Tables, TypeDef, TypeId, TypeRef};
use super::scalar;
use crate::emptied::{self, Place, Step};
use crate::interrupt;

/// A value in its canonical form, and what was dropped to get it.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    pub value: Value,
    /// Paths of unknown members in the order of the document, up to a limit: `spec.containers[0].bogus`.
    pub unknown: Vec<String>,
    /// Lists and maps that were sent empty, and are not in `value`.
    pub(crate) emptied: Vec<Place>,
}

/// The members that give the kind of an object, in the order in which they are written.
const HEAD: [&str; 2] = ["kind", "apiVersion"];

/// Estimated bytes that defaults add to a list item. Field managers are counted later, when they are known.
const ADDED_TO_ITEM: usize = 256;

/// Estimated bytes that defaults add to a container, more than to any other item.
const ADDED_TO_CONTAINER: usize = 2 << 10;

/// Reads `value` as the message `id`.
///
/// # Errors
/// The first value in document order that its type cannot parse, such as a time; else the first value of a wrong type.
pub fn decode(tables: &Tables, id: TypeId, value: Value) -> Result<Decoded, DecodeError> {
    decode_within(tables, id, value, Budget::UNLIMITED)
}

/// Returns the metadata of an object with its fields in the order of their type.
#[must_use]
pub fn ordered_metadata(tables: &Tables, metadata: Value) -> Value {
    match tables.by_openapi_name("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta") {
        Some(id) => rewritten(tables, id, metadata),
        None => metadata,
    }
}

/// Converts `value` to the canonical form of the message `id`; values that their types cannot read stay unchanged.
#[must_use]
pub fn rewritten(tables: &Tables, id: TypeId, value: Value) -> Value {
    let mut decoder = Decoder { lenient: true, ..Decoder::new(tables, Budget::UNLIMITED) };
    // A lenient decoder never fails, and nothing is too heavy without a limit.
    decoder.message(id, value).unwrap_or_default()
}

/// Like [`decode`], with a limit on the memory of the object in its canonical form and of the defaults that are added to it,
/// both of which can be hundreds of bytes for a `{}`.
///
/// # Errors
/// As [`decode`], and when the object exceeds the limit.
pub fn decode_within(
    tables: &Tables,
    id: TypeId,
    value: Value,
    budget: Budget,
) -> Result<Decoded, DecodeError> {
    let mut decoder = Decoder::new(tables, budget);
    let value = decoder.message(id, value)?;
    match decoder.mismatch {
        Some(mismatch) => Err(mismatch),
        None => Ok(Decoded { value, unknown: decoder.unknown.into_told(), emptied: decoder.emptied }),
    }
}

struct Decoder<'t> {
    tables: &'t Tables,
    budget: Budget,
    /// Whether values that their types cannot read stay unchanged instead of being errors.
    lenient: bool,
    unknown: Paths,
    /// The first wrong type. Reading goes on, because an unparsable value is reported in preference to it.
    mismatch: Option<DecodeError>,
    /// The path with list indices, for unknown members.
    indexed: String,
    /// The path without list indices, for type errors.
    plain: String,
    /// The path step by step, for empty lists and maps.
    steps: Vec<Step>,
    emptied: Vec<Place>,
    /// Package and name of the innermost message, for type errors.
    owner: (&'static str, &'static str),
    /// The message whose field reads its JSON by itself, and is named in place of what it reads.
    reader: Option<&'static str>,
}

impl<'t> Decoder<'t> {
    fn new(tables: &'t Tables, budget: Budget) -> Self {
        Self {
            tables,
            budget,
            lenient: false,
            unknown: Paths::new(),
            mismatch: None,
            indexed: String::new(),
            plain: String::new(),
            steps: Vec::new(),
            emptied: Vec::new(),
            owner: ("", ""),
            reader: None,
        }
    }

    fn message(&mut self, id: TypeId, value: Value) -> Result<Value, DecodeError> {
        let definition = self.tables.get(id);
        let members = match value {
            Value::Object(members) => members,
            other => return Ok(self.wrong(other, &self.message_type(id))),
        };
        let owner = std::mem::replace(&mut self.owner, (definition.package.alias, definition.name));
        let mut decoded: BTreeMap<&str, Value> = BTreeMap::new();
        for (name, member) in members {
            if definition.object && HEAD.contains(&name.as_str()) {
                let member = if self.steps.is_empty() { member } else { self.head(&name, member) };
                decoded.extend(HEAD.into_iter().find(|field| **field == name).map(|field| (field, member)));
                continue;
            }
            let found = self.tables.field_with_owners(id, &name);
            let owners = found.as_ref().map(|(owners, _)| owners.as_slice()).unwrap_or_default();
            let lengths = self.enter(&name, owners);
            match found {
                None => self.unknown.note(|| self.indexed.clone()),
                Some(_) if member.is_null() => {}
                Some((_, field)) => {
                    self.steps.push(Step::Name(field.name.into()));
                    let value = self.value(&field.kind, member)?;
                    self.note_empty(definition, field, &value);
                    self.steps.pop();
                    if !value.is_null() && !schemas::is_neither(&field.kind, &value) {
                        decoded.insert(field.name, value);
                    }
                }
            }
            self.leave(lengths);
        }
        self.owner = owner;
        let written = self.write(id, definition, decoded);
        // Lists, maps and messages were counted when they were read.
        self.budget.take(weight::of_map())?;
        for (name, value) in &written {
            let own = if value.is_object() || value.is_array() { 0 } else { weight::of(value) };
            self.budget.take(weight::of_member(name).saturating_add(own))?;
        }
        Ok(Value::Object(written))
    }

    /// Records the place of an empty list or map that will not be written.
    fn note_empty(&mut self, owner: &TypeDef, field: &Field, value: &Value) {
        let is_map = match (field.kind.pointee(), value) {
            (TypeRef::List(_) | TypeRef::SchemaOrArray(_), Value::Array(items)) if items.is_empty() => false,
            (TypeRef::Map(_), Value::Object(members)) if members.is_empty() => true,
            _ => return,
        };
        if !field.always_written && self.emptied.len() < emptied::MOST {
            let is_unwritten = owner.package.alias == "meta";
            self.emptied.push(Place { path: self.steps.clone(), is_map, is_unwritten });
        }
    }

    fn write(
        &self,
        id: TypeId,
        definition: &TypeDef,
        mut decoded: BTreeMap<&str, Value>,
    ) -> Map<String, Value> {
        // A map built from a list has no spare capacity.
        let mut written: Vec<(String, Value)> = Vec::new();
        if definition.object {
            for name in HEAD {
                let value = decoded.remove(name).filter(|value| !value.is_null());
                written.extend(value.map(|value| (name.to_owned(), value)));
            }
        }
        for field in self.tables.flat_fields(id) {
            if let Some(value) = written_form(self.tables, field, decoded.remove(field.name)) {
                written.push((field.name.to_owned(), value));
            }
        }
        written.into_iter().collect()
    }

    fn value(&mut self, kind: &TypeRef, value: Value) -> Result<Value, DecodeError> {
        interrupt::checkpoint();
        match (kind, value) {
            (TypeRef::Pointer(inner), value) => self.value(inner, value),
            (TypeRef::Message(id), value) => self.message(*id, value),
            (TypeRef::Raw(_), value) => {
                self.budget.take(weight::of(&value))?;
                Ok(value)
            }
            (TypeRef::List(inner), value) => self.list(inner, value, kind),
            (TypeRef::Map(inner), value) => self.map(inner, value, kind),
            (
                TypeRef::SchemaOrArray(id) | TypeRef::SchemaOrBool(id) | TypeRef::SchemaOrStrings(id),
                value,
            ) => self.schema_or(kind, *id, value),
            (TypeRef::String | TypeRef::Enum(_) | TypeRef::IntOrString, value @ Value::String(_))
            | (TypeRef::Bool, value @ Value::Bool(_)) => Ok(value),
            (TypeRef::String | TypeRef::Enum(_), value) => Ok(self.wrong(value, &self.go_type(kind))),
            (TypeRef::Bool, value) => Ok(self.wrong(value, "bool")),
            (TypeRef::Int32 | TypeRef::Int64 | TypeRef::Float64, value) => Ok(self.number(kind, value)),
            (TypeRef::IntOrString, Value::Number(number)) if fits_32(&number) => Ok(Value::Number(number)),
            (TypeRef::IntOrString, value) => self.unread(self.mismatch(&value, "int32"), value),
            (TypeRef::Bytes, value) => Ok(self.base64(value)),
            (TypeRef::Time | TypeRef::MicroTime, Value::String(text)) => {
                match scalar::time(&text, *kind == TypeRef::MicroTime) {
                    Ok(time) => Ok(Value::String(time)),
                    Err(error) => self.unread(error.into(), Value::String(text)),
                }
            }
            (TypeRef::Time | TypeRef::MicroTime, value) => {
                self.unread(self.mismatch(&value, "string"), value)
            }
            (TypeRef::Quantity, value) => {
                let read = match &value {
                    Value::String(text) => scalar::quantity(text),
                    other => scalar::quantity(&other.to_string()),
                };
                match read {
                    Ok(quantity) => Ok(Value::String(quantity)),
                    Err(error) => self.unread(error.into(), value),
                }
            }
        }
    }

    fn list(&mut self, inner: &TypeRef, value: Value, kind: &TypeRef) -> Result<Value, DecodeError> {
        let mut items = match value {
            Value::Array(items) => items,
            other => return Ok(self.wrong(other, &self.go_type(kind))),
        };
        for (index, item) in items.iter_mut().enumerate() {
            let length = self.indexed.len();
            self.indexed.push_str(&format!("[{index}]"));
            self.budget.take(weight::of_item().saturating_add(self.added(inner)))?;
            if let Value::String(text) = item {
                self.budget.take(weight::of_text(text.len()))?;
            }
            self.steps.push(Step::Index(index));
            *item = self.element(inner, std::mem::take(item))?;
            self.steps.pop();
            self.indexed.truncate(length);
        }
        Ok(Value::Array(items))
    }

    /// Returns the bytes that defaults add to an item of this type.
    fn added(&self, inner: &TypeRef) -> usize {
        match inner.pointee() {
            TypeRef::Message(id) if self.tables.get(*id).name.ends_with("Container") => ADDED_TO_CONTAINER,
            TypeRef::Message(_) => ADDED_TO_ITEM,
            _ => 0,
        }
    }

    fn map(&mut self, inner: &TypeRef, value: Value, kind: &TypeRef) -> Result<Value, DecodeError> {
        let mut members = match value {
            Value::Object(members) => members,
            other => return Ok(self.wrong(other, &self.go_type(kind))),
        };
        for (name, member) in &mut members {
            let length = self.indexed.len();
            self.indexed.push('.');
            self.indexed.push_str(name);
            let own = member.as_str().map_or(0, |text| weight::of_text(text.len()));
            self.budget.take(weight::of_member(name).saturating_add(own))?;
            // Scalars have no empty parts, so their path is not needed.
            let has_parts =
                matches!(inner.pointee(), TypeRef::Message(_) | TypeRef::List(_) | TypeRef::Map(_));
            self.steps.push(Step::Name(if has_parts { name.clone().into() } else { "".into() }));
            *member = self.element(inner, std::mem::take(member))?;
            self.steps.pop();
            self.indexed.truncate(length);
        }
        members.sort_keys();
        Ok(Value::Object(members))
    }

    /// Decodes an item of a list or a value of a map: null becomes the zero value, as in Go.
    fn element(&mut self, inner: &TypeRef, value: Value) -> Result<Value, DecodeError> {
        if !value.is_null() {
            return self.value(inner, value);
        }
        let zero = zero(self.tables, inner);
        self.budget.take(weight::of(&zero))?;
        Ok(zero)
    }

    fn number(&mut self, kind: &TypeRef, value: Value) -> Value {
        let fits = match (kind, &value) {
            (TypeRef::Int32, Value::Number(number)) => fits_32(number),
            (TypeRef::Int64, Value::Number(number)) => number.as_i64().is_some(),
            (_, value) => value.is_number(),
        };
        match value {
            // Written without a fraction of zero, so that what is sent again is no change.
            Value::Number(number) if fits && *kind == TypeRef::Float64 => {
                Value::Number(scalar::float(number))
            }
            value if fits => value,
            value => self.wrong(value, &self.go_type(kind)),
        }
    }

    fn base64(&mut self, value: Value) -> Value {
        let read = match &value {
            Value::String(text) => scalar::base64(text).map_err(DecodeError::from),
            Value::Array(items) => self.bytes(items),
            _ => return self.wrong(value, "[]uint8"),
        };
        match read {
            Ok(text) => Value::String(text),
            Err(error) => self.note(error, value),
        }
    }

    /// Decodes bytes that are given as a list of numbers.
    fn bytes(&self, items: &[Value]) -> Result<String, DecodeError> {
        let byte = |item: &Value| match item.as_u64().and_then(|number| u8::try_from(number).ok()) {
            Some(byte) => Ok(byte),
            None if item.is_null() => Ok(0),
            None => Err(self.mismatch(item, "uint8")),
        };
        let bytes: Vec<u8> = items.iter().map(byte).collect::<Result<_, _>>()?;
        Ok(scalar::to_base64(&bytes))
    }

    /// Decodes the kind of an object inside another. That of the whole was looked at before.
    fn head(&mut self, name: &str, value: Value) -> Value {
        let lengths = self.enter(name, &["TypeMeta"]);
        let is_text = value.is_string() || value.is_null();
        let read = if is_text { value } else { self.wrong(value, "string") };
        self.leave(lengths);
        read
    }

    /// Appends a member to both paths, in `plain` after the embedded types that hold it. Returns the former lengths, to undo it.
    fn enter(&mut self, name: &str, embedding: &[&str]) -> (usize, usize) {
        let lengths = (self.indexed.len(), self.plain.len());
        let steps = [(&mut self.indexed, &[][..]), (&mut self.plain, embedding)];
        for (path, embedding) in steps {
            for step in embedding.iter().copied().chain([name]) {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(step);
            }
        }
        lengths
    }

    fn leave(&mut self, (indexed, plain): (usize, usize)) {
        self.indexed.truncate(indexed);
        self.plain.truncate(plain);
    }
}

fn fits_32(number: &Number) -> bool {
    number.as_i64().is_some_and(|number| i32::try_from(number).is_ok())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::builtin::tables;

    fn read(group: &str, kind: &str, value: &Value) -> Result<Decoded, DecodeError> {
        decode(tables(), tables().kind(group, "v1", kind).expect("a kind"), value.clone())
    }

    #[test]
    fn unknown_members_are_reported_with_their_paths() {
        let pod = json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a", "odd": 1},
            "spec": {"containers": [{"name": "c", "bogus": true}]}, "top": 1});
        let decoded = read("", "Pod", &pod).expect("decodes");
        assert_eq!(decoded.unknown, ["metadata.odd", "spec.containers[0].bogus", "top"]);
        assert_eq!(
            decoded.value.to_string(),
            r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"},"spec":{"containers":[{"name":"c","resources":{}}]},"status":{}}"#
        );
    }

    #[test]
    fn what_no_type_reads_stays_as_it_is() {
        let odd = json!({"metadata": {"creationTimestamp": "soon"}, "spec": {"parallelism": "two", "template": 7},
            "kind": "Job", "status": []});
        let id = tables().kind("batch", "v1", "Job").expect("a kind");
        assert_eq!(
            rewritten(tables(), id, odd).to_string(),
            r#"{"kind":"Job","metadata":{"creationTimestamp":"soon"},"spec":{"parallelism":"two","template":7},"status":[]}"#
        );
    }

    #[test]
    fn wrong_types_are_worded_as_the_servers_decoder_words_them() {
        let job = json!({"spec": {"parallelism": "two"}});
        assert_eq!(
            read("batch", "Job", &job).expect_err("wrong type").to_string(),
            "json: cannot unmarshal string into Go struct field JobSpec.spec.parallelism of type int32"
        );
        let embedded = json!({"spec": {"volumes": [{"name": "v", "hostPath": {"path": 1}}]}});
        assert_eq!(
            read("", "Pod", &embedded).expect_err("wrong type").to_string(),
            "json: cannot unmarshal number into Go struct field HostPathVolumeSource.spec.volumes.VolumeSource.hostPath.path \
             of type string"
        );
        let kind = json!({"spec": {"volumeClaimTemplates": [{"kind": 1}]}});
        assert_eq!(
            read("apps", "StatefulSet", &kind).expect_err("wrong type").to_string(),
            "json: cannot unmarshal number into Go struct field PersistentVolumeClaim.spec.volumeClaimTemplates.TypeMeta.kind of \
             type string"
        );
        let map = json!({"data": {"a": 5}});
        assert_eq!(
            read("", "ConfigMap", &map).expect_err("wrong type").to_string(),
            "json: cannot unmarshal number into Go struct field ConfigMap.data of type string"
        );
    }
}
