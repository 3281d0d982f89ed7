//! Supplies the CEL types of built-in kinds for type checks, from the field tables, by the rules of apiserver
//! `pkg/cel/common/schemas.go`.
//!
//! Fields that a server cannot type are left out, so that their use is reported as an undefined field, as a server
//! does: quantities, and lists and maps of them, have no single type in the schema.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use admit_cel::{DeclField, DeclKind, DeclType, ListType, Type, escape_property};
use admit_policy::{GroupVersionKind, GroupVersionResource, Types};

use crate::builtin::{RawKind, TypeId, TypeRef, tables};
use crate::resources::{ResourceTable, builtin_rows};

static TABLE: LazyLock<ResourceTable> = LazyLock::new(|| ResourceTable::new(builtin_rows(), 0));

/// The types of built-in kinds, built on first use.
#[derive(Debug, Default)]
pub struct BuiltinTypes {
    made: RefCell<HashMap<GroupVersionKind, Option<Type>>>,
}

impl Types for BuiltinTypes {
    fn kinds(&self, resource: &GroupVersionResource) -> Vec<GroupVersionKind> {
        let GroupVersionResource { group, version, resource } = resource;
        let kind = TABLE.find(group, version, resource).map(|row| row.kind.as_str());
        kind.map(|kind| GroupVersionKind::new(group.as_str(), version.as_str(), kind)).into_iter().collect()
    }

    fn built_in(&self) -> Vec<(&str, &str)> {
        TABLE.rows().iter().map(|row| (row.group.as_str(), row.plural.as_str())).collect()
    }

    fn type_of(&self, kind: &GroupVersionKind) -> Option<Type> {
        if let Some(made) = self.made.borrow().get(kind) {
            return made.clone();
        }
        let id = tables().kind(&kind.group, &kind.version, &kind.kind);
        let made = id.map(|id| Arc::new(object(id, &kind.kind, &mut vec![id])).cel_type());
        self.made.borrow_mut().insert(kind.clone(), made.clone());
        made
    }
}

/// Builds the type of a message; `around` are the enclosing messages, including this one.
fn object(id: TypeId, name: &str, around: &mut Vec<TypeId>) -> DeclType {
    let definition = tables().get(id);
    let mut fields: Vec<DeclField> = Vec::new();
    let mut add = |property: &str, decl: Option<DeclType>, required: bool| {
        if let (Some(decl), Some(cel_name)) = (decl, escape_property(property)) {
            let (name, cel_name) = (property.into(), cel_name.into());
            fields.push(DeclField { name, cel_name, decl: Arc::new(decl), required });
        }
    };
    if definition.object {
        add("apiVersion", Some(scalar(Type::String)), false);
        add("kind", Some(scalar(Type::String)), false);
    }
    for field in tables().flat_fields(id) {
        add(field.name, value(&field.kind, &format!("{name}.{}", field.name), around), field.required);
    }
    fields.sort_by(|a, b| a.cel_name.cmp(&b.cel_name));
    fields.dedup_by(|a, b| a.cel_name == b.cel_name);
    DeclType::unbounded(DeclKind::Object { name: name.into(), fields: fields.into() })
}

/// Builds the type of a value; None if expressions cannot access it.
fn value(kind: &TypeRef, name: &str, around: &mut Vec<TypeId>) -> Option<DeclType> {
    Some(match kind {
        TypeRef::Pointer(inner) => return value(inner, name, around),
        TypeRef::String | TypeRef::Enum(_) => scalar(Type::String),
        TypeRef::Int32 | TypeRef::Int64 => scalar(Type::Int),
        TypeRef::Float64 => scalar(Type::Double),
        TypeRef::Bool => scalar(Type::Bool),
        TypeRef::Bytes => scalar(Type::Bytes),
        TypeRef::Time | TypeRef::MicroTime => scalar(Type::Timestamp),
        TypeRef::IntOrString => scalar(Type::Dyn),
        TypeRef::Raw(RawKind::Extension | RawKind::Fields) => empty(name),
        TypeRef::Quantity
        | TypeRef::Raw(RawKind::Json)
        | TypeRef::SchemaOrArray(_)
        | TypeRef::SchemaOrBool(_)
        | TypeRef::SchemaOrStrings(_) => return None,
        TypeRef::Message(id) if around.contains(id) => empty(name),
        TypeRef::Message(id) => {
            around.push(*id);
            let made = object(*id, name, around);
            around.pop();
            made
        }
        TypeRef::List(inner) => {
            let items = Arc::new(value(inner, &format!("{name}.@idx"), around)?);
            DeclType::unbounded(DeclKind::List { items, list_type: ListType::Atomic })
        }
        TypeRef::Map(inner) => {
            let value = Arc::new(value(inner, &format!("{name}.@elem"), around)?);
            DeclType::unbounded(DeclKind::Map { key: Arc::new(scalar(Type::String)), value })
        }
    })
}

/// Builds an object type without fields: for a recursive message, or an object without a schema.
fn empty(name: &str) -> DeclType {
    DeclType::unbounded(DeclKind::Object { name: name.into(), fields: Box::default() })
}

fn scalar(ty: Type) -> DeclType {
    DeclType::unbounded(DeclKind::Scalar(ty))
}
