//! Builds the ownership types of built-in kinds from their field tables.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::Value;

use super::{Field, List, ListRelation, Map, ScalarKind, Schema, Type, TypeId};
use crate::builtin::{self, ListType, RawKind, Tables, TypeRef, tables};

static BUILTIN: LazyLock<(Schema, BTreeMap<usize, TypeId>)> = LazyLock::new(|| convert(tables()));

/// Returns the schema of all built-in kinds, and the type of one of them.
#[must_use]
pub fn builtin(group: &str, version: &str, kind: &str) -> Option<(&'static Schema, TypeId)> {
    let table = tables().kind(group, version, kind)?;
    let (schema, ids) = &*BUILTIN;
    Some((schema, *ids.get(&table.index())?))
}

/// Adds object metadata to the schema of a custom resource.
pub(super) fn object_metadata(schema: &mut Schema) -> TypeId {
    let name = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
    let Some(table) = tables().by_openapi_name(name) else { return Schema::DEDUCED };
    let mut converter = Converter { tables: tables(), schema, ids: BTreeMap::new() };
    converter.message(table)
}

fn convert(tables: &Tables) -> (Schema, BTreeMap<usize, TypeId>) {
    let mut schema = Schema::new();
    let mut converter = Converter { tables, schema: &mut schema, ids: BTreeMap::new() };
    for id in tables.ids() {
        converter.message(id);
    }
    let ids = converter.ids;
    (schema, ids)
}

struct Converter<'c> {
    tables: &'c Tables,
    schema: &'c mut Schema,
    /// Messages that were converted, by their index in the tables.
    ids: BTreeMap<usize, TypeId>,
}

impl Converter<'_> {
    fn message(&mut self, id: builtin::TypeId) -> TypeId {
        if let Some(known) = self.ids.get(&id.index()) {
            return *known;
        }
        // Registered before its fields are converted, since types may be recursive.
        let converted = self.schema.add(Type::default());
        self.ids.insert(id.index(), converted);
        let map = self.struct_map(id);
        self.schema.set(converted, Type { map: Some(map), ..Type::default() });
        converted
    }

    fn struct_map(&mut self, id: builtin::TypeId) -> Map {
        let definition = self.tables.get(id);
        let mut fields = BTreeMap::new();
        if definition.object {
            for name in ["apiVersion", "kind"] {
                let kind = self.scalar(ScalarKind::String);
                fields.insert(name.to_owned(), Field { kind, default: None });
            }
        }
        for field in self.tables.flat_fields(id) {
            let default = field.default.and_then(|text| serde_json::from_str(text).ok());
            let default = default.or_else(|| zero(field));
            fields.insert(field.name.to_owned(), Field { kind: self.field(field), default });
        }
        let others = fields.is_empty().then_some(Schema::DEDUCED);
        Map { fields, others, atomic: definition.atomic }
    }

    fn field(&mut self, field: &builtin::Field) -> TypeId {
        let kind = field.kind.pointee();
        match kind {
            TypeRef::List(element) => {
                let relation = list_relation(field);
                let element = self.value(element);
                self.schema.add(Type { list: Some(List { element, relation }), ..Type::default() })
            }
            TypeRef::Map(_) | TypeRef::Message(_) if field.atomic_map || field.granular_map => {
                let converted = self.value(kind);
                let mut of_its_own = self.schema.get(converted).clone();
                if let Some(map) = &mut of_its_own.map {
                    map.atomic = field.atomic_map;
                }
                self.schema.add(of_its_own)
            }
            _ => self.value(kind),
        }
    }

    fn value(&mut self, kind: &TypeRef) -> TypeId {
        match kind {
            TypeRef::Pointer(inner) => self.value(inner),
            TypeRef::Message(id) => self.message(*id),
            TypeRef::List(inner) => {
                let element = self.value(inner);
                let list = List { element, relation: ListRelation::Atomic };
                self.schema.add(Type { list: Some(list), ..Type::default() })
            }
            TypeRef::Map(inner) => {
                let others = Some(self.value(inner));
                self.schema.add(Type { map: Some(Map { others, ..Map::default() }), ..Type::default() })
            }
            TypeRef::Raw(RawKind::Extension) => Schema::ATOMIC,
            TypeRef::Raw(RawKind::Fields | RawKind::Json)
            | TypeRef::SchemaOrArray(_)
            | TypeRef::SchemaOrBool(_)
            | TypeRef::SchemaOrStrings(_)
            | TypeRef::IntOrString => Schema::DEDUCED,
            TypeRef::Int32 | TypeRef::Int64 | TypeRef::Float64 => self.scalar(ScalarKind::Numeric),
            TypeRef::Bool => self.scalar(ScalarKind::Boolean),
            TypeRef::String | TypeRef::Enum(_) | TypeRef::Bytes => self.scalar(ScalarKind::String),
            TypeRef::Time | TypeRef::MicroTime | TypeRef::Quantity => self.scalar(ScalarKind::Untyped),
        }
    }

    fn scalar(&mut self, kind: ScalarKind) -> TypeId {
        self.schema.add(Type { scalar: Some(kind), ..Type::default() })
    }
}

/// Returns the value of an absent member that is always written.
fn zero(field: &builtin::Field) -> Option<Value> {
    match &field.kind {
        _ if !field.always_written => None,
        TypeRef::String | TypeRef::Enum(_) => Some("".into()),
        TypeRef::Int32 | TypeRef::Int64 => Some(0.into()),
        TypeRef::Bool => Some(false.into()),
        _ => None,
    }
}

/// A list without a declared type is treated as strategic merge patch treats it.
fn list_relation(field: &builtin::Field) -> ListRelation {
    match &field.list {
        Some(ListType::Atomic) => ListRelation::Atomic,
        Some(ListType::Set) => ListRelation::Set,
        Some(ListType::Map(keys)) => ListRelation::Map(keys.iter().map(|key| (*key).to_owned()).collect()),
        None if !field.patch.merge => ListRelation::Atomic,
        None if field.patch.merge_key.is_empty() => ListRelation::Set,
        None => ListRelation::Map(vec![field.patch.merge_key.to_owned()]),
    }
}
