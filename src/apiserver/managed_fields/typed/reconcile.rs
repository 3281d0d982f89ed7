//! Adapts field sets that were written under another schema, and finds the structs on a set's paths.

use super::super::path::{Element, FieldSet, Parts};
use super::super::schema::{Form, ListRelation, Schema, TypeId};
use super::Typing;
use crate::interrupt;

impl Typing<'_> {
    /// Adapts a set to this schema: the owner of parts of a value that is now atomic owns the whole value.
    #[must_use]
    pub fn reconciled(&self, set: FieldSet) -> FieldSet {
        let (_, whole) = self.find_whole(self.root, &set, false);
        if whole.is_empty() { set } else { set.recursive_difference(&whole).union(whole) }
    }

    /// Returns whether the value itself is atomic, and the atomic values in it. `leaf`: the set has the value itself and nothing
    /// below it.
    fn find_whole(&self, kind: TypeId, set: &FieldSet, leaf: bool) -> (bool, FieldSet) {
        interrupt::checkpoint();
        let nothing = FieldSet::default();
        match self.schema.form(kind, None) {
            Some(Form::Map(map)) => {
                let untyped = map.fields.is_empty() && map.others == Some(Schema::DEDUCED);
                if untyped {
                    return (false, nothing);
                }
                if map.atomic {
                    return (!leaf && !set.is_empty(), nothing);
                }
                let inside = self.descend(set, |element| match element {
                    Element::Field(name) => map.member(name).map(|(kind, _)| kind),
                    _ => map.others,
                });
                (false, inside)
            }
            Some(Form::List(list)) if list.relation == ListRelation::Atomic => (!leaf, nothing),
            Some(Form::List(list)) => (false, self.descend(set, |_| Some(list.element))),
            Some(Form::Scalar(_)) | None => (false, nothing),
        }
    }

    fn descend(&self, set: &FieldSet, kind_of: impl Fn(&Element) -> Option<TypeId>) -> FieldSet {
        let mut whole = Parts::default();
        for (element, member, below) in set.entries() {
            if let Some(kind) = kind_of(element) {
                let (itself, inside) = self.find_whole(kind, below, member && below.is_empty());
                whole.join_with(element, itself, inside);
            }
        }
        whole.into_set()
    }

    /// Adds every struct field on the paths of the set's members: structs are not owned by themselves, and are removed
    /// or kept with their contents.
    #[must_use]
    pub fn with_passed_fields(&self, set: FieldSet) -> FieldSet {
        self.with_passed(Some(self.root), set)
    }

    fn with_passed(&self, kind: Option<TypeId>, set: FieldSet) -> FieldSet {
        interrupt::checkpoint();
        let definition = kind.map(|kind| self.schema.get(kind));
        let map = definition.and_then(|definition| definition.map.as_ref());
        let list = definition.and_then(|definition| definition.list.as_ref());
        set.mapped(|element, member, below| {
            let (inner, passed) = match element {
                Element::Field(name) => {
                    let member = map.and_then(|map| map.member(name));
                    (member.map(|(kind, _)| kind), member.is_some_and(|(_, declared)| declared))
                }
                Element::Key(_) => (list.map(|list| list.element), false),
                Element::Item(_) | Element::Index(_) => (None, false),
            };
            let passed = passed && !below.is_empty();
            (member || passed, self.with_passed(inner, below))
        })
    }
}
