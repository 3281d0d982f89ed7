//! Removes the fields of a set from an object.

use serde_json::Value;

use super::super::path::{Element, FieldSet};
use super::super::schema::{Form, List, ListRelation, Map, TypeId};
use super::{Typing, item};
use crate::interrupt;

impl Typing<'_> {
    /// Removes the fields in `removed` from `object`. A list or map that becomes empty stays unless it is
    /// in the set itself.
    #[must_use]
    pub fn without(&self, mut object: Value, removed: &FieldSet) -> Value {
        self.remove(self.root, &mut object, removed);
        object
    }

    fn remove(&self, kind: TypeId, value: &mut Value, removed: &FieldSet) {
        interrupt::checkpoint();
        let form = self.schema.form(kind, Some(value));
        match (form, value) {
            (Some(Form::List(list)), Value::Array(items)) => self.remove_items(list, items, removed),
            (Some(Form::Map(map)), Value::Object(members)) => self.remove_members(map, members, removed),
            _ => {}
        }
    }

    fn remove_items(&self, list: &List, items: &mut Vec<Value>, removed: &FieldSet) {
        if list.relation == ListRelation::Atomic {
            items.clear();
            return;
        }
        items.retain_mut(|item| {
            let Ok(element) = item::element(self.schema, list, item) else { return false };
            if removed.is_member(&element) {
                return false;
            }
            if let Some(below) = removed.below(&element) {
                self.remove(list.element, item, below);
            }
            true
        });
    }

    fn remove_members(&self, map: &Map, members: &mut serde_json::Map<String, Value>, removed: &FieldSet) {
        if map.atomic {
            members.clear();
            return;
        }
        members.retain(|name, member| {
            let element = Element::Field(name.clone());
            if removed.is_member(&element) {
                return false;
            }
            if let (Some(below), Some((kind, _))) = (removed.below(&element), map.member(name)) {
                self.remove(kind, member, below);
            }
            true
        });
    }
}
