//! Field sets that were written under another schema, and the structs that a set passes through.

use super::super::path::{Element, FieldSet, Path};
use super::super::schema::{Form, ListRelation, Schema, TypeId};
use super::Typing;
use crate::interrupt;

impl Typing<'_> {
    /// The set under this schema: who owned parts of what is owned as a whole today owns the whole.
    #[must_use]
    pub fn reconciled(&self, set: FieldSet) -> FieldSet {
        let mut whole = FieldSet::default();
        self.find_whole(self.root, &set, false, &mut Vec::new(), &mut whole);
        if whole.is_empty() { set } else { set.recursive_difference(&whole).union(&whole) }
    }

    /// `leaf`: the set names the value itself and nothing in it.
    fn find_whole(&self, kind: TypeId, set: &FieldSet, leaf: bool, path: &mut Path, whole: &mut FieldSet) {
        interrupt::checkpoint();
        match self.schema.form(kind, None) {
            Some(Form::Map(map)) => {
                let untyped = map.fields.is_empty() && map.others == Some(Schema::DEDUCED);
                if untyped {
                    return;
                }
                if map.atomic {
                    if !leaf && !set.is_empty() {
                        whole.insert(path);
                    }
                    return;
                }
                self.descend(set, path, whole, |element| match element {
                    Element::Field(name) => map.member(name).map(|(kind, _)| kind),
                    _ => map.others,
                });
            }
            Some(Form::List(list)) if list.relation == ListRelation::Atomic => {
                if !leaf {
                    whole.insert(path);
                }
            }
            Some(Form::List(list)) => self.descend(set, path, whole, |_| Some(list.element)),
            Some(Form::Scalar(_)) | None => {}
        }
    }

    fn descend(
        &self,
        set: &FieldSet,
        path: &mut Path,
        whole: &mut FieldSet,
        kind_of: impl Fn(&Element) -> Option<TypeId>,
    ) {
        for (element, member, below) in set.entries() {
            if let Some(kind) = kind_of(element) {
                path.push(element.clone());
                self.find_whole(kind, below, member && below.is_empty(), path, whole);
                path.pop();
            }
        }
    }

    /// The set with every struct field that its paths pass through: those are owned by nobody, and are removed or kept
    /// with what is in them.
    #[must_use]
    pub fn with_passed_fields(&self, set: &FieldSet) -> FieldSet {
        let mut all = set.clone();
        self.add_passed(Some(self.root), set, &mut Vec::new(), &mut all);
        all
    }

    fn add_passed(&self, kind: Option<TypeId>, set: &FieldSet, path: &mut Path, all: &mut FieldSet) {
        interrupt::checkpoint();
        let definition = kind.map(|kind| self.schema.get(kind));
        let map = definition.and_then(|definition| definition.map.as_ref());
        let list = definition.and_then(|definition| definition.list.as_ref());
        for (element, _, below) in set.entries().filter(|(_, _, below)| !below.is_empty()) {
            path.push(element.clone());
            let inner = match element {
                Element::Field(name) => {
                    let member = map.and_then(|map| map.member(name));
                    if member.is_some_and(|(_, declared)| declared) {
                        all.insert(path);
                    }
                    member.map(|(kind, _)| kind)
                }
                Element::Key(_) => list.map(|list| list.element),
                Element::Item(_) | Element::Index(_) => None,
            };
            self.add_passed(inner, below, path, all);
            path.pop();
        }
    }
}
