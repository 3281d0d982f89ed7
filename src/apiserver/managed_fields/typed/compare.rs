//! Which fields differ between two states of an object.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::super::path::{Element, FieldSet, Path, Scalar};
use super::super::schema::{Form, List, ListRelation, Map, TypeId};
use super::{Typing, item, items, members, no_items, no_members};
use crate::interrupt;

/// The differences; no path is in two of the sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    pub removed: FieldSet,
    pub modified: FieldSet,
    pub added: FieldSet,
}

impl Comparison {
    /// The differences outside `ignored` and all that is below it.
    #[must_use]
    pub fn excluding(self, ignored: &FieldSet) -> Self {
        Self {
            removed: self.removed.recursive_difference(ignored),
            modified: self.modified.recursive_difference(ignored),
            added: self.added.recursive_difference(ignored),
        }
    }
}

type Sides<'v> = (Option<&'v Value>, Option<&'v Value>);

impl Typing<'_> {
    #[must_use]
    pub fn compare(&self, old: &Value, new: &Value) -> Comparison {
        let mut differences = Comparison::default();
        self.compare_values(self.root, (Some(old), Some(new)), &mut Vec::new(), &mut differences);
        differences
    }

    fn compare_values(&self, kind: TypeId, sides: Sides<'_>, path: &mut Path, found: &mut Comparison) {
        interrupt::checkpoint();
        let (old, new) = sides;
        let walk = |form, path: &mut Path, found: &mut Comparison| match form {
            Some(Form::Map(map)) if !map.atomic && !no_members(old, new) => {
                self.compare_members(map, sides, path, found);
            }
            Some(Form::List(list)) if list.relation != ListRelation::Atomic && !no_items(old, new) => {
                self.compare_items(list, sides, path, found);
            }
            _ => {
                if let (Some(old), Some(new)) = sides
                    && !same(old, new)
                {
                    found.modified.insert(path);
                }
            }
        };
        // A value may change from one form to the other: then both are looked into.
        if let (Some(before), Some(after)) = (old, new)
            && std::mem::discriminant(before) != std::mem::discriminant(after)
        {
            walk(self.schema.form(kind, old), path, found);
        }
        walk(self.schema.form(kind, new.or(old)), path, found);
        match sides {
            (None, Some(_)) => found.added.insert(path),
            (Some(_), None) => found.removed.insert(path),
            _ => {}
        }
    }

    fn compare_members(&self, map: &Map, (old, new): Sides<'_>, path: &mut Path, found: &mut Comparison) {
        let (old, new) = (members(old), members(new));
        let names: BTreeSet<&String> = old.into_iter().chain(new).flat_map(serde_json::Map::keys).collect();
        for name in names {
            let Some((kind, _)) = map.member(name) else { continue };
            let sides =
                (old.and_then(|members| members.get(name)), new.and_then(|members| members.get(name)));
            path.push(Element::Field(name.clone()));
            self.compare_values(kind, sides, path, found);
            path.pop();
        }
    }

    fn compare_items(&self, list: &List, (old, new): Sides<'_>, path: &mut Path, found: &mut Comparison) {
        let mut pairs: BTreeMap<Element, (Vec<&Value>, Vec<&Value>)> = BTreeMap::new();
        for (element, item) in item::elements(self.schema, list, items(old)) {
            pairs.entry(element).or_default().0.push(item);
        }
        for (element, item) in item::elements(self.schema, list, items(new)) {
            pairs.entry(element).or_default().1.push(item);
        }
        for (element, (old, new)) in pairs {
            path.push(element);
            match (old.as_slice(), new.as_slice()) {
                // Items that cannot be told apart count as one value.
                ([_, _, ..], [_, _, ..]) => {
                    let equal =
                        old.len() == new.len() && old.iter().zip(&new).all(|(one, two)| same(one, two));
                    if !equal {
                        found.modified.insert(path);
                    }
                }
                ([_, _, ..], rest) => {
                    if let Some(item) = rest.first() {
                        self.compare_values(list.element, (None, Some(item)), path, found);
                    }
                    found.removed.insert(path);
                }
                (rest, [_, _, ..]) => {
                    if let Some(item) = rest.first() {
                        self.compare_values(list.element, (Some(item), None), path, found);
                    }
                    found.added.insert(path);
                }
                (old, new) => {
                    let sides = (old.first().copied(), new.first().copied());
                    self.compare_values(list.element, sides, path, found);
                }
            }
            path.pop();
        }
    }
}

/// Equality that looks at what numbers mean, not at how they are written.
pub(crate) fn same(one: &Value, two: &Value) -> bool {
    match (one, two) {
        (Value::Number(_), Value::Number(_)) => Scalar::of(one) == Scalar::of(two),
        (Value::Array(one), Value::Array(two)) => {
            one.len() == two.len() && one.iter().zip(two).all(|(one, two)| same(one, two))
        }
        (Value::Object(one), Value::Object(two)) => {
            one.len() == two.len()
                && one.iter().all(|(name, value)| two.get(name).is_some_and(|other| same(value, other)))
        }
        _ => one == two,
    }
}
