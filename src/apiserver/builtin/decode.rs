//! Reads a JSON object as a built-in kind and writes it again as the API server's typed encoder would: unknown members
//! are reported and dropped, nulls and empty values leave or stay as each field's rule says, members stand in the
//! table's order, map keys are sorted, times and quantities have their canonical form.
//!
//! Left to others: duplicate members (only the parser of the text sees them), defaults, validation of values.

use std::collections::BTreeMap;

use admit_policy::bounded::{Paths, shorten};
use admit_policy::go_text::{self, json_kind};
use admit_policy::weight::{self, Budget, TooHeavy};
use serde_json::{Map, Number, Value};

use super::go_names;
use super::model::{Field, RawKind, Tables, TypeDef, TypeId, TypeRef};
use super::scalar;
use crate::interrupt;

/// A value in its canonical form, and what had to be dropped to get there.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    pub value: Value,
    /// Paths of unknown members in the order of the document, of very many the first: `spec.containers[0].bogus`.
    pub unknown: Vec<String>,
}

/// A value that has the wrong type for its field, in the words of the API server's decoder.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct DecodeError {
    text: String,
    /// Where the number is that does not fit, and how the text shows it.
    number: Option<(String, String)>,
    too_heavy: Option<TooHeavy>,
}

impl DecodeError {
    fn new(mut text: String) -> Self {
        shorten(&mut text, MAX_TEXT);
        Self { text, number: None, too_heavy: None }
    }

    /// The limit, if what is wrong is that the values weigh too much.
    #[must_use]
    pub fn too_heavy(&self) -> Option<TooHeavy> {
        self.too_heavy
    }

    /// The path of the number that does not fit, if that is what is wrong.
    #[must_use]
    pub fn number_at(&self) -> Option<&str> {
        self.number.as_ref().map(|(path, _)| path.as_str())
    }

    /// The text with that number in the digits in which it was written.
    #[must_use]
    pub fn with_digits(&self, literal: &str) -> String {
        let shown = self.number.as_ref().map(|(_, shown)| format!("number {shown} "));
        shown.map_or_else(
            || self.text.clone(),
            |shown| self.text.replacen(&shown, &format!("number {literal} "), 1),
        )
    }
}

impl From<TooHeavy> for DecodeError {
    fn from(limit: TooHeavy) -> Self {
        Self { too_heavy: Some(limit), ..Self::new(limit.to_string()) }
    }
}

/// Bytes of an error's text: it may quote what was sent.
const MAX_TEXT: usize = 64 << 10;

/// What the server adds to an item of a list in defaults and in the names of its fields' managers.
const ADDED_TO_ITEM: usize = 512;

/// The same of a container, to which it adds most.
const ADDED_TO_CONTAINER: usize = 2 << 10;

/// Reads `value` as the message `id`.
///
/// # Errors
/// The first value in the order of the document that its type cannot read, such as a time; else the first wrong type.
pub fn decode(tables: &Tables, id: TypeId, value: &Value) -> Result<Decoded, DecodeError> {
    decode_within(tables, id, value, Budget::of(usize::MAX, 1))
}

/// The same with a limit to what the object weighs in its canonical form and with what the server adds to it, both of
/// which can be hundreds of bytes for a `{}`.
///
/// # Errors
/// As [`decode`], and an object that weighs more.
pub fn decode_within(
    tables: &Tables,
    id: TypeId,
    value: &Value,
    budget: Budget,
) -> Result<Decoded, DecodeError> {
    let mut decoder = Decoder {
        tables,
        budget,
        unknown: Paths::new(),
        mismatch: None,
        indexed: String::new(),
        plain: String::new(),
        owner: "",
    };
    let value = decoder.message(id, value)?;
    match decoder.mismatch {
        Some(mismatch) => Err(mismatch),
        None => Ok(Decoded { value, unknown: decoder.unknown.into_told() }),
    }
}

struct Decoder<'t> {
    tables: &'t Tables,
    budget: Budget,
    unknown: Paths,
    /// The first wrong type. Reading goes on, because a value that its own type cannot read is told rather than that.
    mismatch: Option<DecodeError>,
    /// The path with list indices, for unknown members.
    indexed: String,
    /// The path without, as type errors give it.
    plain: String,
    /// The name of the innermost message, which type errors give as well.
    owner: &'static str,
}

impl Decoder<'_> {
    fn message(&mut self, id: TypeId, value: &Value) -> Result<Value, DecodeError> {
        let definition = self.tables.get(id);
        let Value::Object(members) = value else {
            return Ok(self.wrong(value, &self.message_type(id)));
        };
        let owner = std::mem::replace(&mut self.owner, definition.name);
        let mut decoded: BTreeMap<&str, Value> = BTreeMap::new();
        for (name, member) in members {
            if definition.object && (name == "kind" || name == "apiVersion") {
                continue;
            }
            let found = self.tables.field_with_owners(id, name);
            let owners = found.as_ref().map(|(owners, _)| owners.as_slice()).unwrap_or_default();
            let lengths = self.enter(name, owners);
            match found {
                None => self.unknown.note(|| self.indexed.clone()),
                Some(_) if member.is_null() => {}
                Some((_, field)) => match self.value(&field.kind, member)? {
                    // A list of schemas that is neither.
                    Value::Null => {}
                    value => drop(decoded.insert(field.name, value)),
                },
            }
            self.leave(lengths);
        }
        self.owner = owner;
        let written = self.write(id, definition, members, decoded);
        // What is in them was counted when it was read.
        self.budget.take(weight::of_map())?;
        for (name, value) in &written {
            let own = if value.is_object() || value.is_array() { 0 } else { weight::of(value) };
            self.budget.take(weight::of_member(name).saturating_add(own))?;
        }
        Ok(Value::Object(written))
    }

    fn write(
        &self,
        id: TypeId,
        definition: &TypeDef,
        members: &Map<String, Value>,
        mut decoded: BTreeMap<&str, Value>,
    ) -> Map<String, Value> {
        let mut written = Map::new();
        if definition.object {
            for name in ["kind", "apiVersion"] {
                if let Some(value) = members.get(name).filter(|value| !value.is_null()) {
                    written.insert(name.to_owned(), value.clone());
                }
            }
        }
        for field in self.tables.flat_fields(id) {
            if let Some(value) = written_form(self.tables, field, decoded.remove(field.name)) {
                written.insert(field.name.to_owned(), value);
            }
        }
        written
    }

    fn value(&mut self, kind: &TypeRef, value: &Value) -> Result<Value, DecodeError> {
        interrupt::checkpoint();
        match kind {
            TypeRef::Pointer(inner) => self.value(inner, value),
            TypeRef::Message(id) => self.message(*id, value),
            TypeRef::Raw(_) => {
                self.budget.take(weight::of(value))?;
                Ok(value.clone())
            }
            TypeRef::List(inner) => self.list(inner, value, kind),
            TypeRef::Map(inner) => self.map(inner, value, kind),
            TypeRef::SchemaOrArray(id) | TypeRef::SchemaOrBool(id) | TypeRef::SchemaOrStrings(id) => {
                // Types that read themselves know nothing of strict reading.
                let unknown = std::mem::take(&mut self.unknown);
                let read = self.schema(kind, *id, value);
                self.unknown = unknown;
                read
            }
            TypeRef::String | TypeRef::Enum(_) => match value {
                Value::String(_) => Ok(value.clone()),
                _ => Ok(self.wrong(value, &self.go_type(kind))),
            },
            TypeRef::Bool => match value {
                Value::Bool(_) => Ok(value.clone()),
                _ => Ok(self.wrong(value, "bool")),
            },
            TypeRef::Int32 | TypeRef::Int64 | TypeRef::Float64 => Ok(self.number(kind, value)),
            TypeRef::IntOrString => match value {
                Value::String(_) => Ok(value.clone()),
                Value::Number(number) if fits_32(number) => Ok(value.clone()),
                _ => Err(self.mismatch(value, "int32")),
            },
            TypeRef::Bytes => {
                match value {
                    Value::String(text) => Ok(scalar::base64(text)
                        .map_or_else(|why| self.note(DecodeError::new(why)), Value::String)),
                    Value::Array(items) => Ok(self.bytes(items)),
                    _ => Ok(self.wrong(value, "[]uint8")),
                }
            }
            TypeRef::Time | TypeRef::MicroTime => match value {
                Value::String(text) => scalar::time(text, *kind == TypeRef::MicroTime)
                    .map(Value::String)
                    .map_err(DecodeError::new),
                _ => Err(self.mismatch(value, "string")),
            },
            TypeRef::Quantity => {
                let text = match value {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                scalar::quantity(&text).map(Value::String).map_err(DecodeError::new)
            }
        }
    }

    fn list(&mut self, inner: &TypeRef, value: &Value, kind: &TypeRef) -> Result<Value, DecodeError> {
        let Value::Array(items) = value else { return Ok(self.wrong(value, &self.go_type(kind))) };
        let mut decoded = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let length = self.indexed.len();
            self.indexed.push_str(&format!("[{index}]"));
            self.budget.take(weight::of_item().saturating_add(self.added(inner)))?;
            if let Value::String(text) = item {
                self.budget.take(weight::of_text(text.len()))?;
            }
            let value = self.element(inner, item)?;
            decoded.push(value);
            self.indexed.truncate(length);
        }
        Ok(Value::Array(decoded))
    }

    /// What the server will add to an item of this type.
    fn added(&self, inner: &TypeRef) -> usize {
        match inner.pointee() {
            TypeRef::Message(id) if self.tables.get(*id).name.ends_with("Container") => ADDED_TO_CONTAINER,
            TypeRef::Message(_) => ADDED_TO_ITEM,
            _ => 0,
        }
    }

    fn map(&mut self, inner: &TypeRef, value: &Value, kind: &TypeRef) -> Result<Value, DecodeError> {
        let Value::Object(members) = value else { return Ok(self.wrong(value, &self.go_type(kind))) };
        let mut sorted = Map::with_capacity(members.len());
        for (name, member) in members {
            let length = self.indexed.len();
            self.indexed.push('.');
            self.indexed.push_str(name);
            let own = member.as_str().map_or(0, |text| weight::of_text(text.len()));
            self.budget.take(weight::of_member(name).saturating_add(own))?;
            let value = self.element(inner, member)?;
            sorted.insert(name.clone(), value);
            self.indexed.truncate(length);
        }
        sorted.sort_keys();
        Ok(Value::Object(sorted))
    }

    /// An item of a list or a value of a map: null is what Go makes of nothing.
    fn element(&mut self, inner: &TypeRef, value: &Value) -> Result<Value, DecodeError> {
        if !value.is_null() {
            return self.value(inner, value);
        }
        let zero = zero(self.tables, inner);
        self.budget.take(weight::of(&zero))?;
        Ok(zero)
    }

    fn number(&mut self, kind: &TypeRef, value: &Value) -> Value {
        let Value::Number(number) = value else { return self.wrong(value, &self.go_type(kind)) };
        let fits = match kind {
            TypeRef::Int32 => fits_32(number),
            TypeRef::Int64 => number.as_i64().is_some(),
            _ => true,
        };
        if fits { value.clone() } else { self.wrong(value, &self.go_type(kind)) }
    }

    fn schema(&mut self, kind: &TypeRef, id: TypeId, value: &Value) -> Result<Value, DecodeError> {
        match (kind, value) {
            (_, Value::Object(_)) => self.message(id, value),
            (TypeRef::SchemaOrArray(_), Value::Array(_)) => self.list(&TypeRef::Message(id), value, kind),
            (TypeRef::SchemaOrArray(_), _) => Ok(Value::Null),
            (TypeRef::SchemaOrBool(_), Value::Bool(_)) | (TypeRef::SchemaOrStrings(_), _) => {
                Ok(value.clone())
            }
            _ => Err(DecodeError::new("boolean or JSON schema expected".to_owned())),
        }
    }

    /// Bytes that are given one by one.
    fn bytes(&mut self, items: &[Value]) -> Value {
        let mut bytes = Vec::with_capacity(items.len());
        for item in items {
            match item.as_u64().and_then(|number| u8::try_from(number).ok()) {
                Some(byte) => bytes.push(byte),
                None if item.is_null() => bytes.push(0),
                None => return self.wrong(item, "uint8"),
            }
        }
        Value::String(scalar::to_base64(&bytes))
    }

    /// Appends a member to both paths, to one after the types that it is embedded with; the former lengths undo it.
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

    /// Notes a wrong type, if it is the first.
    fn wrong(&mut self, value: &Value, expected: &str) -> Value {
        self.note(self.mismatch(value, expected))
    }

    fn note(&mut self, mismatch: DecodeError) -> Value {
        self.mismatch.get_or_insert(mismatch);
        Value::Null
    }

    fn mismatch(&self, value: &Value, expected: &str) -> DecodeError {
        let shown = match value {
            Value::Number(_) if matches!(expected, "int32" | "int64" | "uint8") => Some(go_text::json(value)),
            _ => None,
        };
        let found =
            shown.as_ref().map_or_else(|| json_kind(value).to_owned(), |shown| format!("number {shown}"));
        let text = if self.plain.is_empty() {
            format!("json: cannot unmarshal {found} into Go value of type {expected}")
        } else {
            format!(
                "json: cannot unmarshal {found} into Go struct field {}.{} of type {expected}",
                self.owner, self.plain
            )
        };
        DecodeError { number: shown.map(|shown| (self.indexed.clone(), shown)), ..DecodeError::new(text) }
    }

    /// How Go calls the type of the value that is looked at: the one of the field, or of an element of it.
    fn go_type(&self, kind: &TypeRef) -> String {
        let field = self.plain.rsplit('.').next().unwrap_or_default();
        match (go_names::field(self.owner, field), kind) {
            (Some(name), TypeRef::List(_)) if name.starts_with("map[") => go_names::element(name).to_owned(),
            (Some(name), TypeRef::List(_) | TypeRef::Map(_)) => name.to_owned(),
            (Some(name), TypeRef::String) => go_names::element(name).to_owned(),
            _ => self.plain_type(kind),
        }
    }

    fn message_type(&self, id: TypeId) -> String {
        let definition = self.tables.get(id);
        format!("{}.{}", definition.package.version, definition.name)
    }

    fn plain_type(&self, kind: &TypeRef) -> String {
        match kind {
            TypeRef::String => "string".to_owned(),
            TypeRef::Enum(id) => format!("v1.{}", self.tables.enumeration(*id).name),
            TypeRef::Int32 => "int32".to_owned(),
            TypeRef::Int64 => "int64".to_owned(),
            TypeRef::Float64 => "float64".to_owned(),
            TypeRef::Bool => "bool".to_owned(),
            TypeRef::Bytes => "[]uint8".to_owned(),
            TypeRef::Time => "v1.Time".to_owned(),
            TypeRef::MicroTime => "v1.MicroTime".to_owned(),
            TypeRef::Quantity => "resource.Quantity".to_owned(),
            TypeRef::IntOrString => "intstr.IntOrString".to_owned(),
            TypeRef::Raw(RawKind::Json) => "v1.JSON".to_owned(),
            TypeRef::Raw(RawKind::Fields) => "v1.FieldsV1".to_owned(),
            TypeRef::Raw(RawKind::Extension) => "runtime.RawExtension".to_owned(),
            TypeRef::SchemaOrArray(_) => "v1.JSONSchemaPropsOrArray".to_owned(),
            TypeRef::SchemaOrBool(_) => "v1.JSONSchemaPropsOrBool".to_owned(),
            TypeRef::SchemaOrStrings(_) => "v1.JSONSchemaPropsOrStringArray".to_owned(),
            TypeRef::Message(id) => self.message_type(*id),
            TypeRef::Pointer(inner) => self.go_type(inner),
            TypeRef::List(inner) => format!("[]{}", self.go_type(inner)),
            TypeRef::Map(inner) if **inner == TypeRef::Quantity => "v1.ResourceList".to_owned(),
            TypeRef::Map(inner) => format!("map[string]{}", self.go_type(inner)),
        }
    }
}

fn fits_32(number: &Number) -> bool {
    number.as_i64().is_some_and(|number| i32::try_from(number).is_ok())
}

/// What the encoder writes for a field, if anything.
fn written_form(tables: &Tables, field: &Field, value: Option<Value>) -> Option<Value> {
    match (&field.kind, value) {
        (TypeRef::Pointer(_) | TypeRef::Raw(_), Some(value)) => Some(value),
        (
            TypeRef::Message(_)
            | TypeRef::Time
            | TypeRef::MicroTime
            | TypeRef::Quantity
            | TypeRef::IntOrString,
            value,
        ) => {
            let value = value.unwrap_or_else(|| zero(tables, &field.kind));
            let empty = value.is_null() || value.as_object().is_some_and(Map::is_empty);
            (!(field.omit_zero && empty)).then_some(value)
        }
        (_, Some(value)) if field.always_written || !is_empty(&value) => Some(value),
        (kind, _) if field.always_written => Some(zero(tables, kind)),
        _ => None,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
    }
}

/// The zero value of a type as the encoder writes it.
fn zero(tables: &Tables, kind: &TypeRef) -> Value {
    match kind {
        TypeRef::String | TypeRef::Enum(_) => "".into(),
        TypeRef::Int32 | TypeRef::Int64 | TypeRef::Float64 | TypeRef::IntOrString => 0.into(),
        TypeRef::Bool => false.into(),
        TypeRef::Quantity => "0".into(),
        TypeRef::Message(id) => Value::Object(
            tables
                .flat_fields(*id)
                .into_iter()
                .filter_map(|field| Some((field.name.to_owned(), written_form(tables, field, None)?)))
                .collect(),
        ),
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::builtin::tables;

    fn read(group: &str, kind: &str, value: &Value) -> Result<Decoded, DecodeError> {
        decode(tables(), tables().kind(group, "v1", kind).expect("a kind"), value)
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
        let map = json!({"data": {"a": 5}});
        assert_eq!(
            read("", "ConfigMap", &map).expect_err("wrong type").to_string(),
            "json: cannot unmarshal number into Go struct field ConfigMap.data of type string"
        );
    }
}
