//! Decodes the values of a CRD's schema that are a schema or something else. Upstream their types read JSON by themselves: unknown members
//! in them are not reported, and type errors name the message that holds the outermost of them.

use serde_json::Value;

use super::super::model::{TypeId, TypeRef};
use super::{DecodeError, Decoder};

/// Whether a value of `items` is neither a schema nor a list of some, which is not written.
pub(super) fn is_neither(kind: &TypeRef, value: &Value) -> bool {
    matches!(kind.pointee(), TypeRef::SchemaOrArray(_)) && value.as_array().is_some_and(Vec::is_empty)
}

impl Decoder<'_> {
    /// Decodes a value of one of these types, whose schemas are messages `id`.
    pub(super) fn schema_or(
        &mut self,
        kind: &TypeRef,
        id: TypeId,
        value: Value,
    ) -> Result<Value, DecodeError> {
        let unknown = std::mem::take(&mut self.unknown);
        let reader = self.reader;
        self.reader.get_or_insert(self.owner.1);
        let read = self.schema_or_other(kind, id, value);
        self.reader = reader;
        self.unknown = unknown;
        read
    }

    fn schema_or_other(&mut self, kind: &TypeRef, id: TypeId, value: Value) -> Result<Value, DecodeError> {
        match (kind, value) {
            (_, value @ Value::Object(_)) => self.message(id, value),
            (TypeRef::SchemaOrArray(_), value @ Value::Array(_)) => {
                self.list(&TypeRef::Message(id), value, kind)
            }
            (TypeRef::SchemaOrArray(_), _) => Ok(Value::Null),
            (TypeRef::SchemaOrStrings(_), value @ Value::Array(_)) => {
                // Errors name the type of the items, not that of the field.
                let owner = std::mem::take(&mut self.owner);
                let read = self.list(&TypeRef::String, value, kind);
                self.owner = owner;
                read
            }
            (TypeRef::SchemaOrBool(_), value @ Value::Bool(_)) | (TypeRef::SchemaOrStrings(_), value) => {
                Ok(value)
            }
            (_, value) => self.unread(DecodeError::new("boolean or JSON schema expected".to_owned()), value),
        }
    }
}
