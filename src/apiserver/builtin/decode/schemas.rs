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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::builtin::decode::{Decoded, decode};
    use crate::builtin::tables;

    fn read(schema: &Value) -> Result<Decoded, DecodeError> {
        let id = tables().kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition").expect("a kind");
        let definition =
            json!({"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}]}});
        decode(tables(), id, definition)
    }

    #[test]
    fn type_errors_name_the_message_that_reads_by_itself() {
        for (schema, found) in [
            (json!({"externalDocs": {"url": 1}}), "number into Go struct field ExternalDocumentation"),
            (json!({"items": {"externalDocs": {"url": 1}}}), "number into Go struct field JSONSchemaProps"),
            (
                json!({"additionalProperties": {"x-kubernetes-validations": [{"rule": []}]}}),
                "array into Go struct field JSONSchemaProps",
            ),
            (json!({"dependencies": {"a": ["b", {}]}}), "object into Go struct field JSONSchemaProps"),
        ] {
            let error = read(&schema).expect_err("wrong type").to_string();
            assert!(error.contains(found) && error.ends_with("of type string"), "{schema}: {error}");
        }
    }

    #[test]
    fn items_that_are_neither_a_schema_nor_some_are_not_written() {
        for items in [json!([]), json!(5), json!("text"), json!(null)] {
            let decoded = read(&json!({"type": "array", "items": items})).expect("decodes");
            let schema = &decoded.value["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
            assert_eq!(*schema, json!({"type": "array"}));
            assert_eq!(decoded.emptied.len(), usize::from(items.is_array()), "{items}");
        }
    }
}
