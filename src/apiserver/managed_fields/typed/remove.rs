//! An object without the fields of a set.

use serde_json::Value;

use super::super::path::{Element, FieldSet};
use super::super::schema::{Form, List, ListRelation, Map, TypeId};
use super::{Typing, item};
use crate::interrupt;

impl Typing<'_> {
    /// What is left of `object`. A list or map that has lost everything stays, empty: it is not itself in the set.
    #[must_use]
    pub fn without(&self, object: &Value, removed: &FieldSet) -> Value {
        self.value_without(self.root, object, removed)
    }

    fn value_without(&self, kind: TypeId, value: &Value, removed: &FieldSet) -> Value {
        interrupt::checkpoint();
        match (self.schema.form(kind, Some(value)), value) {
            (Some(Form::List(list)), Value::Array(items)) => self.items_without(list, items, removed),
            (Some(Form::Map(map)), Value::Object(members)) => self.members_without(map, members, removed),
            _ => value.clone(),
        }
    }

    fn items_without(&self, list: &List, items: &[Value], removed: &FieldSet) -> Value {
        if list.relation == ListRelation::Atomic {
            return Value::Array(Vec::new());
        }
        let mut kept = Vec::new();
        for (element, item) in item::elements(self.schema, list, items) {
            if !removed.is_member(&element) {
                kept.push(match removed.below(&element) {
                    Some(below) => self.value_without(list.element, item, below),
                    None => item.clone(),
                });
            }
        }
        Value::Array(kept)
    }

    fn members_without(
        &self,
        map: &Map,
        members: &serde_json::Map<String, Value>,
        removed: &FieldSet,
    ) -> Value {
        if map.atomic {
            return Value::Object(serde_json::Map::new());
        }
        let mut kept = serde_json::Map::new();
        for (name, member) in members {
            let element = Element::Field(name.clone());
            if removed.is_member(&element) {
                continue;
            }
            let value = match (removed.below(&element), map.member(name)) {
                (Some(below), Some((kind, _))) => self.value_without(kind, member, below),
                _ => member.clone(),
            };
            kept.insert(name.clone(), value);
        }
        Value::Object(kept)
    }
}
