//! The fields that whoever sent an object owns.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::path::{Element, FieldSet};
use super::super::schema::{Form, List, ListRelation, Map, TypeId};
use super::{Typing, item, items, members};
use crate::interrupt;

impl Typing<'_> {
    /// Every leaf of the object, every item of a list that is told apart, and every member of a map that is no struct.
    #[must_use]
    pub fn owned(&self, object: &Value) -> FieldSet {
        self.own(self.root, object).1
    }

    /// Whether the value is a leaf, and what is owned in it.
    fn own(&self, kind: TypeId, value: &Value) -> (bool, FieldSet) {
        interrupt::checkpoint();
        match self.schema.form(kind, Some(value)) {
            Some(Form::List(list)) if list.relation != ListRelation::Atomic => {
                (false, self.own_items(list, value))
            }
            Some(Form::Map(map)) if !map.atomic => (false, self.own_members(map, value)),
            _ => (true, FieldSet::default()),
        }
    }

    fn own_members(&self, map: &Map, value: &Value) -> FieldSet {
        let mut set = FieldSet::default();
        for (name, member) in members(Some(value)).into_iter().flatten() {
            let Some((kind, declared)) = map.member(name) else { continue };
            let (leaf, below) = self.own(kind, member);
            let hollow = member.is_null() || member.as_object().is_some_and(serde_json::Map::is_empty);
            set.join(Element::Field(name.clone()), leaf || hollow || !declared, below);
        }
        set
    }

    /// Items that cannot be told apart are owned together, without what is in them.
    fn own_items(&self, list: &List, value: &Value) -> FieldSet {
        let found = item::elements(self.schema, list, items(Some(value)));
        let mut seen = BTreeSet::new();
        let repeated: BTreeSet<Element> = found
            .iter()
            .map(|(element, _)| element)
            .filter(|element| !seen.insert(*element))
            .cloned()
            .collect();
        let mut set = FieldSet::default();
        for (element, item) in found {
            let alone = !repeated.contains(&element);
            let below = if alone { self.own(list.element, item).1 } else { FieldSet::default() };
            set.join(element, true, below);
        }
        set
    }
}
