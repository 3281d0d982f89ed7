//! Compares two states of an object field by field.

use serde_json::Value;

use super::super::path::{Element, FieldSet, Parts, Scalar};
use super::super::schema::{Form, List, ListRelation, Map, TypeId};
use super::{Typing, item, items, members, no_items, no_members};
use crate::interrupt;

/// The differences; the sets are disjoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    pub removed: FieldSet,
    pub modified: FieldSet,
    pub added: FieldSet,
}

impl Comparison {
    /// Removes `ignored` and all paths below it.
    #[must_use]
    pub fn excluding(self, ignored: &FieldSet) -> Self {
        Self {
            removed: self.removed.recursive_difference(ignored),
            modified: self.modified.recursive_difference(ignored),
            added: self.added.recursive_difference(ignored),
        }
    }
}

/// Differences that were found so far.
#[derive(Default)]
struct Found {
    removed: Parts,
    modified: Parts,
    added: Parts,
}

/// The difference between two states of one value.
#[derive(Default)]
struct Difference {
    removed: bool,
    modified: bool,
    added: bool,
    below: Found,
}

impl Found {
    /// Adds the difference at `element` and below it.
    fn join(&mut self, element: &Element, difference: Difference) {
        let Difference { removed, modified, added, below } = difference;
        let below = below.into_comparison();
        self.removed.join_with(element, removed, below.removed);
        self.modified.join_with(element, modified, below.modified);
        self.added.join_with(element, added, below.added);
    }

    fn into_comparison(self) -> Comparison {
        Comparison {
            removed: self.removed.into_set(),
            modified: self.modified.into_set(),
            added: self.added.into_set(),
        }
    }
}

type Sides<'v> = (Option<&'v Value>, Option<&'v Value>);

impl Typing<'_> {
    #[must_use]
    pub fn compare(&self, old: &Value, new: &Value) -> Comparison {
        self.compare_values(self.root, (Some(old), Some(new))).below.into_comparison()
    }

    fn compare_values(&self, kind: TypeId, sides: Sides<'_>) -> Difference {
        interrupt::checkpoint();
        let (old, new) = sides;
        let mut found = Difference { removed: new.is_none(), added: old.is_none(), ..Difference::default() };
        // When a value changes from one form to another, both forms are compared.
        if let (Some(before), Some(after)) = (old, new)
            && std::mem::discriminant(before) != std::mem::discriminant(after)
        {
            self.compare_as(self.schema.form(kind, old), sides, &mut found);
        }
        self.compare_as(self.schema.form(kind, new.or(old)), sides, &mut found);
        found
    }

    fn compare_as(&self, form: Option<Form<'_>>, sides: Sides<'_>, found: &mut Difference) {
        let (old, new) = sides;
        match form {
            Some(Form::Map(map)) if !map.atomic && !no_members(old, new) => {
                self.compare_members(map, sides, &mut found.below);
            }
            Some(Form::List(list)) if list.relation != ListRelation::Atomic && !no_items(old, new) => {
                self.compare_items(list, sides, &mut found.below);
            }
            _ => {
                if let (Some(old), Some(new)) = sides
                    && !same(old, new)
                {
                    found.modified = true;
                }
            }
        }
    }

    fn compare_members(&self, map: &Map, (old, new): Sides<'_>, found: &mut Found) {
        let (old, new) = (members(old), members(new));
        let added = |name: &&String| old.is_none_or(|old| !old.contains_key(*name));
        let names = new.into_iter().flat_map(serde_json::Map::keys).filter(added);
        for name in old.into_iter().flat_map(serde_json::Map::keys).chain(names) {
            let Some((kind, _)) = map.member(name) else { continue };
            let sides =
                (old.and_then(|members| members.get(name)), new.and_then(|members| members.get(name)));
            found.join(&Element::Field(name.clone()), self.compare_values(kind, sides));
        }
    }

    fn compare_items(&self, list: &List, (old, new): Sides<'_>, found: &mut Found) {
        let side = |items, is_new: bool| {
            let elements = item::elements(self.schema, list, items).into_iter();
            elements.map(move |(element, item)| (element, is_new, item))
        };
        let mut all: Vec<(Element, bool, &Value)> =
            side(items(old), false).chain(side(items(new), true)).collect();
        all.sort_by(|(one, ..), (two, ..)| one.cmp(two));
        for alike in all.chunk_by(|(one, ..), (two, ..)| one == two) {
            let Some((element, ..)) = alike.first() else { continue };
            let of = |wanted: bool| -> Vec<&Value> {
                alike.iter().filter(|(_, is_new, _)| *is_new == wanted).map(|(_, _, item)| *item).collect()
            };
            found.join(element, self.compare_alike(list, &of(false), &of(true)));
        }
    }

    /// Compares the items of both lists that have the same key.
    fn compare_alike(&self, list: &List, old: &[&Value], new: &[&Value]) -> Difference {
        let first = |side: &[&Value], item: Option<&&Value>| match item {
            Some(item) if side.is_empty() => self.compare_values(list.element, (None, Some(item))),
            Some(item) => self.compare_values(list.element, (Some(item), None)),
            None => Difference::default(),
        };
        match (old, new) {
            // Items with the same key count as one value.
            ([_, _, ..], [_, _, ..]) => {
                let equal = old.len() == new.len() && old.iter().zip(new).all(|(one, two)| same(one, two));
                Difference { modified: !equal, ..Difference::default() }
            }
            ([_, _, ..], rest) => Difference { removed: true, ..first(&[], rest.first()) },
            (rest, [_, _, ..]) => Difference { added: true, ..first(rest, rest.first()) },
            (old, new) => self.compare_values(list.element, (old.first().copied(), new.first().copied())),
        }
    }
}

/// Compares values; numbers are equal if they mean the same number, however they are written.
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
