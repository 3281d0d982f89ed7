//! Defines type information for field ownership: which lists have items identified by keys, and which values are owned as a
//! whole.
//!
//! Types refer to one another by index into one vector, so that kinds may be recursive. They are
//! made from the field tables of the built-in kinds or from the schema of a CustomResourceDefinition.

mod builtin;
mod custom;

use std::collections::BTreeMap;

use serde_json::Value;

pub use builtin::builtin;

/// Types that refer to one another.
#[derive(Clone, Debug)]
pub struct Schema {
    types: Vec<Type>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeId(usize);

/// The possible forms of a value. If there are several, the value decides.
#[derive(Clone, Debug, Default)]
pub struct Type {
    pub scalar: Option<ScalarKind>,
    pub list: Option<List>,
    pub map: Option<Map>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScalarKind {
    Numeric,
    String,
    Boolean,
    /// Any scalar.
    Untyped,
}

#[derive(Clone, Debug)]
pub struct List {
    pub element: TypeId,
    pub relation: ListRelation,
}

/// How the items of a list are identified: `x-kubernetes-list-type`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListRelation {
    Atomic,
    Set,
    /// Items are identified by these fields.
    Map(Vec<String>),
}

/// A struct, a map, or both.
#[derive(Clone, Debug, Default)]
pub struct Map {
    pub fields: BTreeMap<String, Field>,
    /// The type of members that are no declared fields; None if there may be no others.
    pub others: Option<TypeId>,
    /// Owned as a whole: `x-kubernetes-map-type`.
    pub atomic: bool,
}

#[derive(Clone, Debug)]
pub struct Field {
    pub kind: TypeId,
    /// The value of an absent key field.
    pub default: Option<Value>,
}

impl Map {
    /// Returns the type of a member, and whether it is a declared field.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<(TypeId, bool)> {
        match self.fields.get(name) {
            Some(field) => Some((field.kind, true)),
            None => self.others.map(|kind| (kind, false)),
        }
    }
}

/// The form of a value: the one among those of its type that applies.
#[derive(Clone, Copy, Debug)]
pub enum Form<'s> {
    Map(&'s Map),
    Scalar(ScalarKind),
    List(&'s List),
}

impl Schema {
    /// Any value: maps are owned member by member, lists as a whole.
    pub const DEDUCED: TypeId = TypeId(0);
    /// Any value, owned as a whole.
    pub const ATOMIC: TypeId = TypeId(1);

    /// Creates a schema with only the two types that every schema has.
    #[must_use]
    pub(super) fn new() -> Self {
        let list = || Some(List { element: Self::ATOMIC, relation: ListRelation::Atomic });
        let map = |others, atomic| Some(Map { fields: BTreeMap::new(), others: Some(others), atomic });
        let scalar = Some(ScalarKind::Untyped);
        let deduced = Type { scalar, list: list(), map: map(Self::DEDUCED, false) };
        let atomic = Type { scalar, list: list(), map: map(Self::ATOMIC, true) };
        Self { types: vec![deduced, atomic] }
    }

    /// Returns the schema of a custom resource and its root type, from the schema of one version of its definition.
    #[must_use]
    pub fn of_definition(version: &Value) -> (Self, TypeId) {
        custom::from_definition(version)
    }

    pub(super) fn add(&mut self, definition: Type) -> TypeId {
        self.types.push(definition);
        TypeId(self.types.len() - 1)
    }

    pub(super) fn set(&mut self, id: TypeId, definition: Type) {
        if let Some(slot) = self.types.get_mut(id.0) {
            *slot = definition;
        }
    }

    #[must_use]
    pub fn get(&self, id: TypeId) -> &Type {
        // INVARIANT: ids are made by `add` of the schema that they are used with, and types are never removed.
        &self.types[id.0]
    }

    /// Returns the form of `value` as type `id`; without a value, or with one that fits no form, the first form of the type.
    #[must_use]
    pub fn form(&self, id: TypeId, value: Option<&Value>) -> Option<Form<'_>> {
        let found = self.get(id);
        let map = found.map.as_ref().map(Form::Map);
        let scalar = found.scalar.map(Form::Scalar);
        let list = found.list.as_ref().map(Form::List);
        let fitting = match value {
            Some(Value::Object(_)) => map,
            Some(Value::Array(_)) => list,
            Some(Value::Null) | None => None,
            Some(Value::String(_) | Value::Number(_) | Value::Bool(_)) => scalar,
        };
        fitting.or(map).or(scalar).or(list)
    }
}
