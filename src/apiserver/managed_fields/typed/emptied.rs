//! Finds the atomic lists and maps around values that were sent empty.

use serde_json::Value;

use super::super::path::{Element, FieldSet};
use super::super::schema::{Form, ListRelation};
use super::{Typing, item};
use crate::emptied::{Place, Step};

impl Typing<'_> {
    /// Returns the atomic lists and maps of `object` that contain one of the `places` within a list. Go compares
    /// lists of its own types with all their contents, and distinguishes empty values from absent ones.
    pub(crate) fn wholes_around(&self, object: &Value, places: &[Place]) -> FieldSet {
        places.iter().filter_map(|place| self.whole_around(object, &place.path)).collect()
    }

    fn whole_around(&self, object: &Value, path: &[Step]) -> Option<Vec<Element>> {
        let (mut kind, mut value, mut elements) = (self.root, object, Vec::new());
        let (_, steps) = path.split_last()?;
        for (at, step) in steps.iter().enumerate() {
            let form = self.schema.form(kind, Some(value))?;
            match (form, step) {
                (Form::Map(map), Step::Name(name)) if !map.atomic => {
                    kind = map.member(name)?.0;
                    value = value.get(&**name)?;
                    elements.push(Element::Field(name.clone().into_owned()));
                }
                (Form::List(list), Step::Index(index)) if list.relation != ListRelation::Atomic => {
                    value = value.get(*index)?;
                    elements.push(item::element(self.schema, list, value).ok()?);
                    kind = list.element;
                }
                // Maps are compared member by member, so the place counts only within a list.
                _ => {
                    let in_list = steps.iter().skip(at).any(|step| matches!(step, Step::Index(_)));
                    return in_list.then_some(elements);
                }
            }
        }
        None
    }
}
