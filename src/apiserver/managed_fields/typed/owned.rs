//! The fields that whoever sent an object owns.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::path::{Element, FieldSet, Path};
use super::super::schema::{Form, List, ListRelation, Map, TypeId};
use super::{Typing, item, items, members};
use crate::interrupt;

impl Typing<'_> {
    /// Every leaf of the object, every item of a list that is told apart, and every member of a map that is no struct.
    #[must_use]
    pub fn owned(&self, object: &Value) -> FieldSet {
        let mut set = FieldSet::default();
        self.own(self.root, object, &mut Vec::new(), &mut set);
        set
    }

    fn own(&self, kind: TypeId, value: &Value, path: &mut Path, set: &mut FieldSet) {
        interrupt::checkpoint();
        match self.schema.form(kind, Some(value)) {
            Some(Form::List(list)) if list.relation != ListRelation::Atomic => {
                self.own_items(list, value, path, set);
            }
            Some(Form::Map(map)) if !map.atomic => self.own_members(map, value, path, set),
            _ => set.insert(path),
        }
    }

    fn own_members(&self, map: &Map, value: &Value, path: &mut Path, set: &mut FieldSet) {
        for (name, member) in members(Some(value)).into_iter().flatten() {
            let Some((kind, declared)) = map.member(name) else { continue };
            path.push(Element::Field(name.clone()));
            self.own(kind, member, path, set);
            let hollow = member.is_null() || member.as_object().is_some_and(serde_json::Map::is_empty);
            if hollow || !declared {
                set.insert(path);
            }
            path.pop();
        }
    }

    /// Items that cannot be told apart are owned together, without what is in them.
    fn own_items(&self, list: &List, value: &Value, path: &mut Path, set: &mut FieldSet) {
        let found = item::elements(self.schema, list, items(Some(value)));
        let mut seen = BTreeSet::new();
        let repeated: BTreeSet<&Element> =
            found.iter().map(|(element, _)| element).filter(|element| !seen.insert(*element)).collect();
        for (element, item) in &found {
            path.push(element.clone());
            if !repeated.contains(element) {
                self.own(list.element, item, path, set);
            }
            set.insert(path);
            path.pop();
        }
    }
}
