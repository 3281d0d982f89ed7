//! Describes the served built-in kinds and their fields for the analysis of expressions, from the field tables and rows.

use std::str::Split;
use std::sync::LazyLock;

use admit_apimachinery::names::NameRule;
use admit_policy::{
    Catalogue, Connection, FieldShape, FieldType, GroupVersionKind, Presence, ServedKind, Shape, StableFields,
};
use serde_json::Value;

use super::storage_version::empty_status;

use crate::builtin::{Field, ListType, TypeRef, tables};
use crate::kinds::{Habit, Naming, has, strategy};
use crate::resources::{Asked, ResourceInfo, Scope, Subresource, builtin_rows};

/// All built-in kinds that are stored.
pub(super) static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| {
    let shapes = tables().ids().map(|id| {
        let name = tables().get(id).openapi_name();
        let known = Known::of(&name);
        let fields = tables().flat_fields(id).into_iter().map(|one| field(one, &known)).collect();
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
    let name = strategy(row).and_then(|strategy| strategy.name);
    let path = format!("{}/{}", row.api_version(), row.kind);
    Some(ServedKind {
        kind: GroupVersionKind::new(row.group.as_str(), row.version.as_str(), row.kind.as_str()),
        plural: row.plural.clone(),
        namespaced: row.scope == Scope::Namespaced,
        subresources: written.map(Subresource::name).map(str::to_owned).collect(),
        connections: row.subresources.iter().filter_map(|one| connection(row, *one, shapes)).collect(),
        shape: shape.index(),
        name: match name {
            None => Some(NameRule::Subdomain),
            Some(Naming::Rule(rule)) => Some(rule),
            Some(Naming::Own(_)) => None,
        },
        fixed: words(FIXED, &path).map(str::to_owned).collect(),
        stable: STABLE.lines().filter_map(|line| stable(line.strip_prefix(&*path)?)).collect(),
        fresh_status: fresh_status(row, &path),
    })
}

/// Returns the fields that the status of a new object may have; None for kinds for which that is unknown.
fn fresh_status(row: &ResourceInfo, path: &str) -> Option<Vec<String>> {
    let set = line(FRESH, path)?;
    if !row.serves(Subresource::Status) || has(row, Habit::StatusIsKept) {
        return None;
    }
    let empty = empty_status(row);
    let empty = empty.as_ref().and_then(Value::as_object).into_iter().flat_map(|empty| empty.keys().cloned());
    Some(empty.chain(set.map(str::to_owned)).collect())
}

/// Describes a subresource for connections, with its options; options with the same fields share a shape.
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
            bounds: None,
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

/// Lists the fields that every object of a type has, a type a line.
const CERTAIN: &str = include_str!("certain.txt");
/// Marks fields whose value is always a member of their enumeration.
const CLOSED: char = '=';
/// Lists the numeric bounds of fields, a type a line.
const BOUNDS: &str = include_str!("bounds.txt");
/// Lists the immutable fields, a kind a line.
const FIXED: &str = include_str!("fixed.txt");
/// Lists the fields whose meaning never changes, some under a condition.
const STABLE: &str = include_str!("stable.txt");
/// Lists the status fields that a server sets in new objects, a kind a line.
const FRESH: &str = include_str!("fresh.txt");

/// Returns the words after a name in the line that begins with it; None without such a line.
fn line<'t>(lines: &'t str, name: &str) -> Option<Split<'t, char>> {
    let mut lines = lines.lines().map(|line| line.split(' '));
    lines.find_map(|mut words| (words.next() == Some(name)).then_some(words))
}

fn words<'t>(lines: &'t str, name: &str) -> impl Iterator<Item = &'t str> {
    line(lines, name).into_iter().flatten()
}

/// Parses the rest of a line after the kind: ` spec.ports but name if has(object.spec)`.
fn stable(line: &str) -> Option<StableFields> {
    let line = line.strip_prefix(' ')?;
    let (fields, when) = match line.split_once(" if ") {
        Some((fields, when)) => (fields, Some(when.to_owned())),
        None => (line, None),
    };
    let (paths, but) = fields.split_once(" but ").unwrap_or((fields, ""));
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect();
    Some(StableFields { paths: words(paths), but: words(but), when })
}

/// The additional facts about the fields of a type.
struct Known {
    certain: Vec<&'static str>,
    bounds: Vec<(&'static str, (i64, i64))>,
}

impl Known {
    fn of(name: &str) -> Self {
        Self {
            certain: words(CERTAIN, name).collect(),
            bounds: words(BOUNDS, name).filter_map(bounds).collect(),
        }
    }
}

/// Parses `port:1..65535`; an omitted end is that of the integer type.
fn bounds(word: &'static str) -> Option<(&'static str, (i64, i64))> {
    let (name, range) = word.split_once(':')?;
    let (least, most) = range.split_once("..")?;
    let end = |text: &str, open: i64| if text.is_empty() { Some(open) } else { text.parse().ok() };
    Some((name, (end(least, i64::MIN)?, end(most, i64::MAX)?)))
}

fn field(field: &Field, known: &Known) -> FieldShape {
    let Known { certain, bounds } = known;
    FieldShape {
        name: field.name.to_owned(),
        of: of(&field.kind),
        required: field.required,
        may_be_absent: matches!(field.kind, TypeRef::Pointer(_)),
        presence: presence(field),
        is_certain: certain.iter().any(|one| one.trim_end_matches(CLOSED) == field.name),
        is_closed: certain.iter().any(|one| one.strip_suffix(CLOSED) == Some(field.name)),
        bounds: bounds.iter().find(|(name, _)| *name == field.name).map(|(_, bounds)| *bounds),
        keys: match &field.list {
            Some(ListType::Map(keys)) => keys.iter().map(|key| (*key).to_owned()).collect(),
            Some(ListType::Atomic | ListType::Set) | None => Vec::new(),
        },
        absent: field.absent.and_then(|text| serde_json::from_str(text).ok()),
    }
}

/// Returns when Go's encoder writes the field.
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
        // An unset quantity becomes 0 when the object is stored.
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

    #[test]
    fn what_is_bounded_is_a_number_and_its_type_has_it() {
        let mut seen = 0;
        for line in BOUNDS.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let mut words = line.split(' ');
            let name = words.next().unwrap();
            let shape = CATALOGUE.shapes.iter().find(|shape| shape.name == name);
            let shape = shape.unwrap_or_else(|| panic!("there is no type {name}"));
            for word in words {
                let (field, (least, most)) = bounds(word).unwrap_or_else(|| panic!("{name} {word}"));
                let field = shape.fields.iter().find(|known| known.name == field);
                let field = field.unwrap_or_else(|| panic!("{name} has no field of {word}"));
                assert!(matches!(field.of, FieldType::Int | FieldType::Int32), "{name} {word}");
                assert!(least < most && field.bounds == Some((least, most)), "{name} {word}");
                seen += 1;
            }
        }
        assert!(seen > 50, "{seen}");
    }

    #[test]
    fn what_is_fixed_is_a_field_of_a_kind() {
        let mut seen = 0;
        for line in FIXED.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (name, paths) = line.split_once(' ').unwrap();
            let is_it =
                |served: &&ServedKind| format!("{}/{}", served.kind.api_version(), served.kind.kind) == name;
            let served =
                CATALOGUE.kinds.iter().find(is_it).unwrap_or_else(|| panic!("there is no kind {name}"));
            assert_eq!(served.fixed, paths.split(' ').collect::<Vec<_>>());
            for path in &served.fixed {
                let mut shape = Some(served.shape);
                for part in path.split('.') {
                    let field = CATALOGUE.field(shape.unwrap_or_else(|| panic!("{name} {path}")), part);
                    shape = field.unwrap_or_else(|| panic!("{name} {path}")).of.shape();
                }
                seen += 1;
            }
        }
        assert!(seen > 30, "{seen}");
    }

    #[test]
    fn what_is_stable_is_a_field_of_a_kind() {
        let mut seen = 0;
        for line in STABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (name, rest) = line.split_at(line.find(' ').unwrap());
            let is_it =
                |served: &&ServedKind| format!("{}/{}", served.kind.api_version(), served.kind.kind) == name;
            let served =
                CATALOGUE.kinds.iter().find(is_it).unwrap_or_else(|| panic!("there is no kind {name}"));
            let fields = stable(rest).unwrap();
            assert!(served.stable.contains(&fields) && !fields.paths.is_empty(), "{line}");
            for path in &fields.paths {
                let mut shape = Some(served.shape);
                for part in path.split('.') {
                    let field = CATALOGUE.field(shape.unwrap_or_else(|| panic!("{name} {path}")), part);
                    shape = field.unwrap_or_else(|| panic!("{name} {path}")).of.shape();
                }
                for name in &fields.but {
                    assert!(CATALOGUE.field(shape.unwrap(), name).is_some(), "{line}: {name}");
                }
                seen += 1;
            }
        }
        assert!(seen > 30, "{seen}");
    }
}
