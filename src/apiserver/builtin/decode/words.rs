//! Words error messages about values of the wrong type as the API server's decoder does, with Go's names of
//! types.

use admit_apimachinery::bounded::shorten;
use admit_apimachinery::go;
use admit_apimachinery::weight::TooHeavy;
use serde_json::Value;

use super::super::go_names;
use super::super::model::{RawKind, TypeId, TypeRef};
use super::super::scalar::ScalarError;
use super::Decoder;

/// An error about a value of the wrong type for its field, in the words of the API server's decoder.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct DecodeError {
    text: String,
    /// Path of a number that does not fit, and how the text shows it.
    number: Option<(String, String)>,
    too_heavy: Option<TooHeavy>,
}

impl DecodeError {
    pub(super) fn new(mut text: String) -> Self {
        shorten(&mut text, MAX_TEXT);
        Self { text, number: None, too_heavy: None }
    }

    /// Returns the limit, if the error is that the values exceed it.
    #[must_use]
    pub fn too_heavy(&self) -> Option<TooHeavy> {
        self.too_heavy
    }

    /// Returns the path of the number that does not fit, if that is the error.
    #[must_use]
    pub fn number_at(&self) -> Option<&str> {
        self.number.as_ref().map(|(path, _)| path.as_str())
    }

    /// Returns the text with that number in its original digits.
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

impl From<ScalarError> for DecodeError {
    fn from(error: ScalarError) -> Self {
        Self::new(error.to_string())
    }
}

/// Most bytes of an error's text, which may quote the request.
const MAX_TEXT: usize = 64 << 10;

impl Decoder<'_> {
    /// Records a wrong type, if it is the first.
    pub(super) fn wrong(&mut self, value: Value, expected: &str) -> Value {
        self.note(self.mismatch(&value, expected), value)
    }

    pub(super) fn note(&mut self, mismatch: DecodeError, value: Value) -> Value {
        self.mismatch.get_or_insert(mismatch);
        if self.lenient { value } else { Value::Null }
    }

    /// Handles a value that its type cannot parse: unchanged if lenient, else an error.
    pub(super) fn unread(&self, error: DecodeError, value: Value) -> Result<Value, DecodeError> {
        if self.lenient { Ok(value) } else { Err(error) }
    }

    pub(super) fn mismatch(&self, value: &Value, expected: &str) -> DecodeError {
        let shown = match value {
            Value::Number(_) if matches!(expected, "int32" | "int64" | "uint8") => {
                Some(go::json::text(value))
            }
            _ => None,
        };
        let found = shown
            .as_ref()
            .map_or_else(|| go::json::kind(value).to_owned(), |shown| format!("number {shown}"));
        let text = if self.plain.is_empty() {
            format!("json: cannot unmarshal {found} into Go value of type {expected}")
        } else {
            format!(
                "json: cannot unmarshal {found} into Go struct field {}.{} of type {expected}",
                self.reader.unwrap_or(self.owner.1),
                self.plain
            )
        };
        DecodeError { number: shown.map(|shown| (self.indexed.clone(), shown)), ..DecodeError::new(text) }
    }

    /// Returns Go's name of the type of the current value: that of the field, or of an element of it.
    pub(super) fn go_type(&self, kind: &TypeRef) -> String {
        let field = self.plain.rsplit('.').next().unwrap_or_default();
        match (go_names::field(self.owner, field), kind) {
            (Some(name), TypeRef::List(_)) if name.starts_with("map[") => go_names::element(name).to_owned(),
            (Some(name), TypeRef::List(_) | TypeRef::Map(_)) => name.to_owned(),
            (Some(name), TypeRef::String) => go_names::element(name).to_owned(),
            _ => self.plain_type(kind),
        }
    }

    pub(super) fn message_type(&self, id: TypeId) -> String {
        let definition = self.tables.get(id);
        format!("{}.{}", definition.package.version, definition.name)
    }

    pub(super) fn plain_type(&self, kind: &TypeRef) -> String {
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
