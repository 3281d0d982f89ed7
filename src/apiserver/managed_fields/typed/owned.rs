//! Computes the set of fields that an object contains, which its sender comes to own.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::path::{Element, FieldSet, Parts};
use super::super::schema::{Form, List, ListRelation, Map, TypeId};
use super::{Typing, item, items, members};
use crate::interrupt;

impl Typing<'_> {
    /// Returns the field set of an object: every leaf, every item of a list whose items have an identity, and every entry of
    /// a map other than a struct.
    #[must_use]
    pub fn owned(&self, object: &Value) -> FieldSet {
        self.own(self.root, object, None).1
    }

    /// Returns [`Typing::owned`] of the result of [`Typing::without`], without building that.
    #[must_use]
    pub fn owned_without(&self, object: &Value, removed: &FieldSet) -> FieldSet {
        self.own(self.root, object, Some(removed)).1
    }

    /// Returns whether the value is a leaf, and the fields in it.
    fn own(&self, kind: TypeId, value: &Value, removed: Option<&FieldSet>) -> (bool, FieldSet) {
        interrupt::checkpoint();
        match self.schema.form(kind, Some(value)) {
            Some(Form::List(list)) if list.relation != ListRelation::Atomic => {
                (false, self.own_items(list, value, removed))
            }
            Some(Form::Map(map)) if !map.atomic => (false, self.own_members(map, value, removed)),
            _ => (true, FieldSet::default()),
        }
    }

    fn own_members(&self, map: &Map, value: &Value, removed: Option<&FieldSet>) -> FieldSet {
        let mut parts = Parts::default();
        for (name, member) in members(Some(value)).into_iter().flatten() {
            let Some((kind, declared)) = map.member(name) else { continue };
            let element = Element::Field(name.clone());
            if is_member(removed, &element) {
                continue;
            }
            let removed = removed.and_then(|removed| removed.below(&element));
            let (leaf, below) = self.own(kind, member, removed);
            let hollow = member.is_null() || member.as_object().is_some_and(|map| is_emptied(map, removed));
            parts.join(element, leaf || hollow || !declared, below);
        }
        parts.into_set()
    }

    /// Returns the fields of the items of a list. Items with the same key are owned together, without their contents.
    fn own_items(&self, list: &List, value: &Value, removed: Option<&FieldSet>) -> FieldSet {
        let mut found = item::elements(self.schema, list, items(Some(value)));
        found.retain(|(element, _)| !is_member(removed, element));
        let mut seen = BTreeSet::new();
        let repeated: BTreeSet<Element> = found
            .iter()
            .map(|(element, _)| element)
            .filter(|element| !seen.insert(*element))
            .cloned()
            .collect();
        let mut parts = Parts::with_capacity(found.len());
        for (element, item) in found {
            let alone = !repeated.contains(&element);
            let removed = removed.and_then(|removed| removed.below(&element));
            let below = if alone { self.own(list.element, item, removed).1 } else { FieldSet::default() };
            parts.join(element, true, below);
        }
        parts.into_set()
    }
}

fn is_member(removed: Option<&FieldSet>, element: &Element) -> bool {
    removed.is_some_and(|removed| removed.is_member(element))
}

/// Whether all members of the map are removed.
fn is_emptied(map: &serde_json::Map<String, Value>, removed: Option<&FieldSet>) -> bool {
    match removed {
        None => map.is_empty(),
        Some(_) => map.keys().all(|name| is_member(removed, &Element::Field(name.clone()))),
    }
}
