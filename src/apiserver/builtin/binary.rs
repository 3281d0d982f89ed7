//! Reproduces what a value loses in etcd: built-in kinds are stored there in protobuf, which has no empty lists and
//! maps; fields of these types that JSON always shows become null. CustomResourceDefinitions are stored as JSON, in which
//! whole numbers have no fraction.

use admit_apimachinery::go;
use serde_json::Value;

use super::model::{Field, Tables, TypeId, TypeRef};

/// The group whose objects are stored as JSON.
const JSON_GROUP: &str = "apiextensions.k8s.io";

/// Changes a decoded value of the message `id` to the form that is read from etcd.
pub(crate) fn through_store(tables: &Tables, id: TypeId, value: &mut Value) {
    if tables.get(id).package.group == JSON_GROUP {
        *value = go::json::rewritten(value.take());
    } else {
        message(tables, id, value);
    }
}

fn message(tables: &Tables, id: TypeId, value: &mut Value) {
    let Value::Object(members) = value else { return };
    for field in tables.flat_fields(id) {
        let Some(member) = members.get_mut(field.name) else { continue };
        if field.always_written && is_emptied(field, member) {
            *member = Value::Null;
        } else {
            inside(tables, &field.kind, member);
        }
    }
}

fn is_emptied(field: &Field, value: &Value) -> bool {
    match (&field.kind, value) {
        (TypeRef::List(_), Value::Array(items)) => items.is_empty(),
        (TypeRef::Map(_), Value::Object(members)) => members.is_empty(),
        _ => false,
    }
}

fn inside(tables: &Tables, kind: &TypeRef, value: &mut Value) {
    match (kind, value) {
        (TypeRef::Message(id), value) => message(tables, *id, value),
        (TypeRef::Pointer(inner), value) => inside(tables, inner, value),
        (TypeRef::List(inner), Value::Array(items)) => {
            items.iter_mut().for_each(|item| inside(tables, inner, item));
        }
        (TypeRef::Map(inner), Value::Object(members)) => {
            members.values_mut().for_each(|member| inside(tables, inner, member));
        }
        // Protobuf has no null: empty bytes are read.
        (TypeRef::Bytes, value @ Value::Null) => {
            *value = "".into();
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::builtin::tables;

    fn stored(group: &str, kind: &str, mut value: Value) -> Value {
        through_store(tables(), tables().kind(group, "v1", kind).expect("a kind"), &mut value);
        value
    }

    #[test]
    fn empty_lists_come_back_as_null() {
        let role = stored("rbac.authorization.k8s.io", "Role", json!({"rules": []}));
        assert_eq!(role, json!({"rules": null}));
        let rule = json!({"rules": [{"verbs": []}]});
        assert_eq!(stored("rbac.authorization.k8s.io", "Role", rule), json!({"rules": [{"verbs": null}]}));
        let range = stored("", "LimitRange", json!({"spec": {"limits": []}}));
        assert_eq!(range, json!({"spec": {"limits": null}}));
    }

    #[test]
    fn definitions_lie_in_the_store_as_json() {
        let definition = json!({"spec": {"versions": []}});
        assert_eq!(
            stored("apiextensions.k8s.io", "CustomResourceDefinition", definition.clone()),
            definition
        );
        let schema =
            |default: &str| format!(r#"{{"spec": {{"default": {default}, "enum": [{default}, 0.5]}}}}"#);
        let written = serde_json::from_str(&schema("1000.0")).expect("JSON");
        let read: Value = serde_json::from_str(&schema("1000")).expect("JSON");
        assert_eq!(stored("apiextensions.k8s.io", "CustomResourceDefinition", written), read);
    }
}
