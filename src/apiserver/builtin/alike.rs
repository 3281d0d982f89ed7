//! Decides whether two values of a type are equal to the API server, which compares their meaning: a quantity in another
//! notation is equal, and an empty or zero value is equal to an absent one, unless its type distinguishes the
//! two.

use std::cmp::Ordering;

use admit_apimachinery::quantity::Quantity;
use serde_json::{Map, Value};

use super::model::{Tables, TypeId, TypeRef};
use crate::interrupt;

static NULL: Value = Value::Null;

impl Tables {
    /// Whether two messages of a type are equal.
    pub(crate) fn alike(&self, id: TypeId, one: &Value, other: &Value) -> bool {
        interrupt::checkpoint();
        if one == other {
            return true;
        }
        let empty = Map::new();
        let (Some(one), Some(other)) = (members(one, &empty), members(other, &empty)) else { return false };
        let same = |name: &String| {
            let [one, other] = [one, other].map(|members| members.get(name).unwrap_or(&NULL));
            self.field(id, name).map_or(one == other, |field| self.alike_as(&field.kind, one, other))
        };
        one.keys().all(same) && other.keys().filter(|name| !one.contains_key(*name)).all(same)
    }

    /// Whether two values of a field are equal.
    pub(crate) fn alike_as(&self, kind: &TypeRef, one: &Value, other: &Value) -> bool {
        if one == other {
            return true;
        }
        match kind {
            TypeRef::Pointer(inner) => !one.is_null() && !other.is_null() && self.alike_as(inner, one, other),
            TypeRef::Message(id) => self.alike(*id, one, other),
            TypeRef::List(inner) => match (items(one), items(other)) {
                (Some(one), Some(other)) => {
                    one.len() == other.len()
                        && one.iter().zip(other).all(|(one, other)| self.alike_as(inner, one, other))
                }
                _ => false,
            },
            TypeRef::Map(inner) => {
                let empty = Map::new();
                let (Some(one), Some(other)) = (members(one, &empty), members(other, &empty)) else {
                    return false;
                };
                one.len() == other.len()
                    && one.iter().all(|(key, value)| {
                        other.get(key).is_some_and(|other| self.alike_as(inner, value, other))
                    })
            }
            TypeRef::Quantity => amounts_alike(one, other),
            TypeRef::String | TypeRef::Enum(_) | TypeRef::Bytes => {
                is_zero(one, &"".into()) && is_zero(other, &"".into())
            }
            TypeRef::Bool => is_zero(one, &false.into()) && is_zero(other, &false.into()),
            TypeRef::Int32 | TypeRef::Int64 | TypeRef::Float64 | TypeRef::IntOrString => {
                is_zero(one, &0.into()) && is_zero(other, &0.into())
            }
            TypeRef::Time
            | TypeRef::MicroTime
            | TypeRef::Raw(_)
            | TypeRef::SchemaOrArray(_)
            | TypeRef::SchemaOrBool(_)
            | TypeRef::SchemaOrStrings(_) => false,
        }
    }
}

fn members<'v>(value: &'v Value, empty: &'v Map<String, Value>) -> Option<&'v Map<String, Value>> {
    if value.is_null() { Some(empty) } else { value.as_object() }
}

fn items(value: &Value) -> Option<&[Value]> {
    if value.is_null() { Some(&[]) } else { value.as_array().map(Vec::as_slice) }
}

fn is_zero(value: &Value, zero: &Value) -> bool {
    value.is_null() || value == zero
}

fn amounts_alike(one: &Value, other: &Value) -> bool {
    let amount = |value: &Value| match value {
        Value::Null => Some(Quantity::of_integer(0).to_string()),
        value => value.as_str().map(str::to_owned),
    };
    let (Some(one), Some(other)) = (amount(one), amount(other)) else { return false };
    matches!((Quantity::parse(&one), Quantity::parse(&other)), (Ok(one), Ok(other)) if one.compare(&other) == Ordering::Equal)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::builtin::tables;

    #[test]
    fn meanings_are_compared() {
        let id = tables().by_openapi_name("io.k8s.api.core.v1.PodSpec").expect("a pod's specification");
        let spec = |limits: serde_json::Value| json!({"containers": [{"name": "c", "resources": {"limits": limits}}]});
        let alike = |one, other| tables().alike(id, &one, &other);
        assert!(alike(spec(json!({"memory": "1Gi"})), spec(json!({"memory": "1073741824"}))));
        assert!(alike(
            spec(json!({})),
            json!({"containers": [{"name": "c", "stdin": false}], "hostNetwork": null})
        ));
        assert!(!alike(spec(json!({"memory": "1Gi"})), spec(json!({"memory": "1G"}))));
        assert!(!alike(spec(json!({"memory": "1Gi"})), spec(json!({"cpu": "1Gi"}))));
        // A pointer to an empty value differs from an absent one.
        assert!(!alike(json!({"securityContext": {}}), json!({})));
        assert!(!alike(json!({"hostUsers": false}), json!({})));
    }
}
