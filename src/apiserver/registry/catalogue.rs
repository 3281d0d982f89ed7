//! The field tables and the rows of served kinds, as those see them who ask where a value may stand, too.

use std::sync::LazyLock;

use admit_policy::{
    Catalogue, Connection, FieldShape, FieldType, GroupVersionKind, Presence, ServedKind, Shape,
};

use crate::builtin::{Field, ListType, TypeRef, tables};
use crate::resources::{Asked, ResourceInfo, Scope, Subresource, builtin_rows};

/// All built-in kinds that are stored.
pub(super) static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| {
    let shapes = tables().ids().map(|id| {
        let name = tables().get(id).openapi_name();
        let certain = certain(&name);
        let fields = tables().flat_fields(id).into_iter().map(|one| field(one, &certain)).collect();
        Shape { name, fields }
    });
    let mut shapes: Vec<Shape> = shapes.collect();
    let rows = builtin_rows();
    let stored = rows.iter().filter(|row| !row.storage_key.is_empty());
    let kinds = stored.filter_map(|row| kind(row, &mut shapes)).collect();
    Catalogue { shapes, kinds }
});

fn kind(row: &ResourceInfo, shapes: &mut Vec<Shape>) -> Option<ServedKind> {
    let shape = tables().kind(&row.group, &row.version, &row.kind)?;
    let written = row.subresources.iter().copied().filter(|subresource| subresource.is_stored());
    Some(ServedKind {
        kind: GroupVersionKind::new(row.group.as_str(), row.version.as_str(), row.kind.as_str()),
        plural: row.plural.clone(),
        namespaced: row.scope == Scope::Namespaced,
        subresources: written.map(Subresource::name).map(str::to_owned).collect(),
        connections: row.subresources.iter().filter_map(|one| connection(row, *one, shapes)).collect(),
        shape: shape.index(),
    })
}

/// What is connected to, with options of their own kind; those with the same fields are of one type.
fn connection(row: &ResourceInfo, subresource: Subresource, shapes: &mut Vec<Shape>) -> Option<Connection> {
    let asked = subresource.asked();
    let (group, _, kind) = subresource.own_kind(row).filter(|_| !asked.is_empty())?;
    let name = asked.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(",");
    let shape = shapes.iter().position(|shape| shape.name == name).unwrap_or_else(|| {
        let fields = asked.iter().map(|(name, holds)| FieldShape {
            name: (*name).to_owned(),
            of: match holds {
                Asked::Flag => FieldType::Bool,
                Asked::Text => FieldType::Text,
                Asked::Texts => FieldType::List(Box::new(FieldType::Text)),
                Asked::Numbers => FieldType::List(Box::new(FieldType::Int)),
            },
            required: false,
            may_be_absent: false,
            presence: Presence::WhereSet,
            is_certain: false,
            is_closed: false,
            keys: Vec::new(),
            absent: None,
        });
        let shape = Shape { name, fields: fields.collect() };
        shapes.push(shape);
        shapes.len().saturating_sub(1)
    });
    let kind = GroupVersionKind::new(group, "v1", kind);
    Some(Connection { subresource: subresource.name().to_owned(), kind, shape })
}

/// The fields that no object of a type lacks, a type a line.
const CERTAIN: &str = include_str!("certain.txt");
/// Marks the fields that hold a member of their enumeration.
const CLOSED: char = '=';

/// The fields that no object of a type lacks.
fn certain(name: &str) -> Vec<&'static str> {
    let mut lines = CERTAIN.lines().map(|line| line.split(' '));
    let line = lines.find_map(|mut words| (words.next() == Some(name)).then_some(words));
    line.into_iter().flatten().collect()
}

fn field(field: &Field, certain: &[&str]) -> FieldShape {
    FieldShape {
        name: field.name.to_owned(),
        of: of(&field.kind),
        required: field.required,
        may_be_absent: matches!(field.kind, TypeRef::Pointer(_)),
        presence: presence(field),
        is_certain: certain.iter().any(|one| one.trim_end_matches(CLOSED) == field.name),
        is_closed: certain.iter().any(|one| one.strip_suffix(CLOSED) == Some(field.name)),
        keys: match &field.list {
            Some(ListType::Map(keys)) => keys.iter().map(|key| (*key).to_owned()).collect(),
            Some(ListType::Atomic | ListType::Set) | None => Vec::new(),
        },
        absent: field.absent.and_then(|text| serde_json::from_str(text).ok()),
    }
}

/// As Go's encoder writes what was read.
fn presence(field: &Field) -> Presence {
    let is_left_out = !field.always_written;
    match &field.kind {
        TypeRef::Message(_) | TypeRef::IntOrString if !field.omit_zero => Presence::Always,
        TypeRef::Time | TypeRef::MicroTime if !field.omit_zero => Presence::MaybeNull,
        TypeRef::Pointer(_)
        | TypeRef::Raw(_)
        | TypeRef::SchemaOrArray(_)
        | TypeRef::SchemaOrBool(_)
        | TypeRef::SchemaOrStrings(_)
        // What is left out becomes 0 when the object is stored.
        | TypeRef::Quantity
            if is_left_out =>
        {
            Presence::WhereSet
        }
        _ if is_left_out => Presence::WhereNotZero,
        TypeRef::String
        | TypeRef::Enum(_)
        | TypeRef::Int32
        | TypeRef::Int64
        | TypeRef::Float64
        | TypeRef::Bool
        | TypeRef::Quantity
        | TypeRef::IntOrString
        | TypeRef::Message(_) => Presence::Always,
        _ => Presence::MaybeNull,
    }
}

fn of(kind: &TypeRef) -> FieldType {
    match kind {
        TypeRef::Pointer(inner) => of(inner),
        TypeRef::String => FieldType::Text,
        TypeRef::Enum(id) => FieldType::OneOf(
            tables().enumeration(*id).values.iter().map(|value| (*value).to_owned()).collect(),
        ),
        TypeRef::Int32 => FieldType::Int32,
        TypeRef::Int64 => FieldType::Int,
        TypeRef::Float64 => FieldType::Float,
        TypeRef::Bool => FieldType::Bool,
        TypeRef::Quantity => FieldType::Quantity,
        TypeRef::IntOrString => FieldType::IntOrText,
        TypeRef::Bytes => FieldType::Bytes,
        TypeRef::Time | TypeRef::MicroTime => FieldType::Time,
        TypeRef::Raw(_)
        | TypeRef::SchemaOrArray(_)
        | TypeRef::SchemaOrBool(_)
        | TypeRef::SchemaOrStrings(_) => FieldType::Other,
        TypeRef::Message(id) => FieldType::Shape(id.index()),
        TypeRef::List(inner) => FieldType::List(Box::new(of(inner))),
        TypeRef::Map(inner) => FieldType::Map(Box::new(of(inner))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_certain_is_said_of_fields_that_there_are() {
        let lines = CERTAIN.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let mut seen = Vec::new();
        for line in lines {
            let mut words = line.split(' ');
            let name = words.next().unwrap();
            let shape = CATALOGUE.shapes.iter().find(|shape| shape.name == name);
            let shape = shape.unwrap_or_else(|| panic!("there is no type {name}"));
            for word in words {
                let field = shape.fields.iter().find(|field| field.name == word.trim_end_matches(CLOSED));
                let field = field.unwrap_or_else(|| panic!("{name} has no field {word}"));
                let is_enumeration = matches!(field.of, FieldType::OneOf(_));
                assert!(field.is_certain && (!field.is_closed || is_enumeration), "{name} {word}");
            }
            assert!(!seen.contains(&name), "{name} has two lines");
            seen.push(name);
        }
        assert!(seen.len() > 30, "{seen:?}");
    }
}
