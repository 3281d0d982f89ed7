//! Indexes where values of a type may occur: the paths of a kind by the types of its fields, for built-in kinds and definitions.

use std::collections::HashMap;

use admit_policy::schema::{Schema, SchemaType};
use admit_policy::{
    Catalogue, FieldShape, FieldType, GroupVersionKind, PolicySet, Presence, ServedKind, Shape,
};
use serde_json::Value;

use crate::reads::EACH;

/// The maximum depth of fields, and number of places per kind.
const DEPTH: usize = 14;
const MOST_PLACES: usize = 20_000;

/// A path of a kind whose values are objects with fields.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// Field names, and [`EACH`] for list items.
    pub(super) pattern: Vec<String>,
    pub(super) shape: usize,
}

/// The types of all kinds.
#[derive(Debug)]
pub(super) struct Types<'a> {
    builtin: Option<&'a Catalogue>,
    custom: Catalogue,
}

/// A kind with the catalogue that it is from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind<'t> {
    pub(super) catalogue: &'t Catalogue,
    pub(super) served: &'t ServedKind,
}

impl<'a> Types<'a> {
    pub(super) fn new(set: &PolicySet, builtin: Option<&'a Catalogue>) -> Self {
        let mut custom = Collector::default();
        for crd in set.documents().crds() {
            let definition = crd.definition();
            for version in definition.versions.iter().filter(|version| version.served) {
                let Some(compiled) = crd.version(&version.name) else { continue };
                let shape = custom.shape(compiled.schema(), 0);
                let mut subresources = Vec::new();
                if version.status_subresource {
                    subresources.push("status".to_owned());
                }
                if version.scale.is_some() {
                    subresources.push("scale".to_owned());
                }
                custom.catalogue.kinds.push(ServedKind {
                    kind: GroupVersionKind::new(&*definition.group, &*version.name, &*definition.names.kind),
                    plural: definition.names.plural.clone(),
                    namespaced: definition.scope == admit_policy::crd::Scope::Namespaced,
                    subresources,
                    connections: Vec::new(),
                    shape,
                    name: None,
                    fixed: Vec::new(),
                    stable: Vec::new(),
                    fresh_status: None,
                });
            }
        }
        Self { builtin, custom: custom.catalogue }
    }

    pub(super) fn kind(&self, kind: &GroupVersionKind) -> Option<Kind<'_>> {
        let of = |catalogue| {
            let served = Catalogue::kind(catalogue, kind)?;
            Some(Kind { catalogue, served })
        };
        of(&self.custom).or_else(|| self.builtin.and_then(of))
    }

    /// Returns the kinds of a resource, in all versions and groups that serve it.
    pub(super) fn of_plural(&self, plural: &str) -> Vec<&ServedKind> {
        let all = self.builtin.into_iter().chain([&self.custom]).flat_map(|catalogue| &catalogue.kinds);
        all.filter(|served| served.plural == plural).collect()
    }

    /// Returns the fields of a type of the built-in kinds.
    pub(super) fn fields(&self, shape: usize) -> &[FieldShape] {
        let found = self.builtin.and_then(|catalogue| catalogue.shape(shape));
        found.map(|shape| shape.fields.as_slice()).unwrap_or_default()
    }

    /// Returns all built-in kinds.
    pub(super) fn builtin(&self) -> impl Iterator<Item = Kind<'_>> {
        let of =
            |catalogue: &'a Catalogue| catalogue.kinds.iter().map(move |served| Kind { catalogue, served });
        self.builtin.into_iter().flat_map(of)
    }
}

impl<'t> Kind<'t> {
    /// Returns the type at a path, and the field that it is the value of.
    pub(super) fn at(self, pattern: &[String]) -> Option<(&'t FieldType, Option<&'t FieldShape>)> {
        let (mut shape, mut here, mut field): (_, Option<&'t FieldType>, Option<&'t FieldShape>) =
            (Some(self.served.shape), None, None);
        for name in pattern {
            match (here, shape) {
                (Some(FieldType::List(of)), _) if name == EACH => here = Some(of),
                (Some(FieldType::Map(of)), _) => here = Some(of),
                (None | Some(FieldType::Shape(_)), Some(index)) => {
                    let found = self.catalogue.field(index, name)?;
                    (here, field) = (Some(&found.of), Some(found));
                }
                _ => return None,
            }
            shape = match here {
                Some(FieldType::Shape(index)) => Some(*index),
                _ => None,
            };
        }
        here.map(|here| (here, field))
    }

    /// Returns the shape (set of fields) of the type at a path, if it is an object.
    pub(super) fn shape_at(self, pattern: &[String]) -> Option<usize> {
        if pattern.is_empty() {
            return Some(self.served.shape);
        }
        match self.at(pattern)?.0 {
            FieldType::Shape(index) => Some(*index),
            _ => None,
        }
    }

    pub(super) fn fields(self, shape: usize) -> &'t [FieldShape] {
        self.catalogue.shape(shape).map(|shape| shape.fields.as_slice()).unwrap_or_default()
    }

    /// Lists all paths of objects, the shortest first; fields that only the server writes are left out.
    pub(super) fn places(self) -> Vec<Place> {
        let mut found = Vec::new();
        let mut open = vec![(Vec::<String>::new(), self.served.shape, vec![self.served.shape])];
        while !open.is_empty() && found.len() < MOST_PLACES {
            let mut next = Vec::new();
            for (pattern, shape, around) in open {
                for field in self.fields(shape) {
                    let is_of_server =
                        pattern.is_empty() && field.name == "status" || field.name == "managedFields";
                    let Some(below) = field.of.shape().filter(|_| !is_of_server) else { continue };
                    if around.contains(&below) || pattern.len() > DEPTH {
                        continue;
                    }
                    let mut deeper = pattern.clone();
                    deeper.push(field.name.clone());
                    deeper.extend(std::iter::repeat_n(EACH.to_owned(), nested(&field.of)));
                    found.push(Place { pattern: deeper.clone(), shape: below });
                    let within = around.iter().copied().chain([below]).collect();
                    next.push((deeper, below, within));
                }
            }
            open = next;
        }
        found
    }

    /// Reports whether values of one shape are valid for the other: it is equal, or has nearly all of its fields.
    pub(super) fn is_alike(self, one: usize, other: usize) -> bool {
        const FEW: usize = 6;
        if one == other {
            return true;
        }
        let (own, theirs) = (self.fields(one), self.fields(other));
        if own.len() < FEW {
            return false;
        }
        let shared =
            own.iter().filter(|field| theirs.iter().any(|it| it.name == field.name && it.of == field.of));
        shared.count().saturating_mul(4) >= own.len().saturating_mul(3)
    }
}

/// Counts the lists and maps around a shape.
fn nested(of: &FieldType) -> usize {
    match of {
        FieldType::List(inner) | FieldType::Map(inner) => nested(inner).saturating_add(1),
        FieldType::Text
        | FieldType::OneOf(_)
        | FieldType::Int
        | FieldType::Int32
        | FieldType::Float
        | FieldType::Bool
        | FieldType::Quantity
        | FieldType::IntOrText
        | FieldType::Time
        | FieldType::Bytes
        | FieldType::Other
        | FieldType::Shape(_) => 0,
    }
}

/// Converts schemas to shapes; two with the same fields become one.
#[derive(Default)]
struct Collector {
    catalogue: Catalogue,
    known: HashMap<String, usize>,
}

impl Collector {
    fn shape(&mut self, schema: &Schema, depth: usize) -> usize {
        let fields: Vec<FieldShape> = schema
            .properties
            .iter()
            .map(|(name, property)| FieldShape {
                name: name.to_string(),
                of: self.of(property, depth.saturating_add(1)),
                required: schema.checks.required.iter().any(|required| **required == **name),
                may_be_absent: true,
                presence: Presence::WhereSet,
                is_certain: false,
                is_closed: false,
                bounds: None,
                keys: property.list_map_keys.iter().map(ToString::to_string).collect(),
                absent: None,
            })
            .collect();
        let text = format!("{fields:?}");
        if let Some(index) = self.known.get(&text) {
            return *index;
        }
        let index = self.catalogue.shapes.len();
        self.catalogue.shapes.push(Shape { name: format!("{index}"), fields });
        self.known.insert(text, index);
        index
    }

    fn of(&mut self, schema: &Schema, depth: usize) -> FieldType {
        if schema.int_or_string {
            return FieldType::IntOrText;
        }
        if depth > DEPTH {
            return FieldType::Other;
        }
        match &schema.schema_type {
            Some(SchemaType::String) => {
                let members: Vec<String> = schema
                    .checks
                    .enumeration
                    .iter()
                    .filter_map(Value::as_str)
                    .map(ToOwned::to_owned)
                    .collect();
                if members.is_empty() { FieldType::Text } else { FieldType::OneOf(members) }
            }
            Some(SchemaType::Integer) => FieldType::Int,
            Some(SchemaType::Number) => FieldType::Float,
            Some(SchemaType::Boolean) => FieldType::Bool,
            Some(SchemaType::Array) => match schema.items.as_deref() {
                Some(item) => FieldType::List(Box::new(self.of(item, depth.saturating_add(1)))),
                None => FieldType::Other,
            },
            Some(SchemaType::Object) => match schema.additional_schema() {
                Some(entry) if schema.properties.is_empty() => {
                    FieldType::Map(Box::new(self.of(entry, depth.saturating_add(1))))
                }
                _ if schema.properties.is_empty() => FieldType::Other,
                _ => FieldType::Shape(self.shape(schema, depth)),
            },
            Some(SchemaType::Other(_)) | None => FieldType::Other,
        }
    }
}
