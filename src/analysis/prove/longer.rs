//! Searches for counterexamples with longer lists and maps than a query models.
//!
//! What a solver refuted for a few items may happen with as many as a bound or a rule names. Items of a valid object are copied until
//! there are so many, and the engine decides. This only refutes: not finding an object proves nothing.

use std::collections::HashSet;
use std::fmt::Write as _;

use admit_policy::schema::{self, ListType, Schema};
use admit_policy::{Pace, Path};
use serde_json::Value as Json;

use super::changes::joined;
use super::document::{Form, NodeId, World};
use super::model::{Model, Sat};
use super::refusals::{MOST_VALUES, answers};
use super::sample;
use super::term::{Constant, Term};
use super::{Solver, Undecided};

/// The most items that a list or map is given.
pub(super) const MOST: usize = 8_192;
/// The most bytes of the items of one list, as JSON: no request is larger.
const MOST_BYTES: usize = 3 << 20;
/// The most lists and maps for which a solver is asked.
const MOST_CUTS: usize = 32;
/// An object with more items in one list is shown as it is: making it smaller would take thousands of decisions on large objects.
pub(super) const MOST_SHRUNK: usize = 64;

/// A step from a value to one inside it.
#[derive(Clone, Debug)]
enum Segment {
    Property(Box<str>),
    /// The first item or entry.
    First,
}

/// A list or map that is modelled with fewer items than its schema allows.
#[derive(Debug)]
pub(super) struct Cut<'s> {
    schema: &'s Schema,
    way: Vec<Segment>,
    /// Path of the field in objects, without indices and keys.
    pub(super) field: String,
    /// The condition that it has an item.
    there: Term,
    /// The number of modelled items.
    pub(super) room: usize,
    /// The most items that the schema allows.
    most: usize,
}

impl<'s> World<'s> {
    /// Returns the lists and maps below a node that are cut.
    pub(super) fn cuts(&mut self, root: NodeId) -> Result<Vec<Cut<'s>>, Undecided> {
        let mut cuts = Vec::new();
        let mut open = vec![(root, Vec::new(), String::new())];
        while let Some((id, way, field)) = open.pop() {
            let node = self.node(id)?.clone();
            let further = |segment| way.iter().cloned().chain([segment]).collect::<Vec<Segment>>();
            let checks = &node.schema.checks;
            let (first, length, room, most) = match &node.form {
                Some(Form::Object(known)) => {
                    for (name, child) in known {
                        // The value as written, not the default.
                        let shown = self.node(*child)?.written.map_or(*child, |(_, written)| written);
                        open.push((shown, further(Segment::Property(name.clone())), joined(&field, name)));
                    }
                    continue;
                }
                Some(Form::List { length, items }) => {
                    (items.first().copied(), *length, items.len(), checks.max_items)
                }
                Some(Form::Map { length, entries }) => {
                    (entries.first().map(|(_, node)| *node), *length, entries.len(), checks.max_properties)
                }
                _ => continue,
            };
            open.extend(first.map(|first| (first, further(Segment::First), format!("{field}[]"))));
            let most = most.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
            if room < most {
                let one = self.terms.int(1);
                let has_item = self.terms.le(one, length);
                let there = self.terms.and(&[node.here, has_item]);
                cuts.push(Cut { schema: node.schema, way, field, there, room, most });
            }
        }
        Ok(cuts)
    }

    /// Returns the lengths of a list beyond those modelled around which a term may change its value, ascending.
    pub(super) fn lengths(&self, term: Term, cut: &Cut<'_>) -> Vec<usize> {
        let ints = self.terms.constants_of(&[term]).into_iter().filter_map(|constant| match constant {
            Constant::Int(value) => usize::try_from(value).ok(),
            Constant::Text(_) => None,
        });
        let mut lengths: Vec<usize> = ints.flat_map(|value| [value, value.saturating_add(1)]).collect();
        lengths.retain(|length| *length > cut.room && *length <= cut.most);
        lengths.sort_unstable();
        lengths.dedup();
        lengths
    }

    /// Asks for each list or map whether there is an object in which it has an item.
    pub(super) fn with_items<'c>(
        &self,
        cuts: impl Iterator<Item = &'c Cut<'c>>,
        (assumed, texts): (&[Term], &Model),
        solver: &mut dyn Solver,
    ) -> Vec<Option<Model>> {
        let mut script = String::from("(set-option :produce-models true)\n(set-logic ALL)\n");
        let mut theres: Vec<Term> = cuts.take(MOST_CUTS).map(|cut| cut.there).collect();
        let values = self.terms.variables_of(assumed).len().max(1);
        theres.truncate(MOST_VALUES.checked_div(values).unwrap_or(1).max(1));
        if theres.is_empty() {
            return Vec::new();
        }
        let roots: Vec<Term> = assumed.iter().chain(&theres).copied().collect();
        self.terms.write(&roots, &mut script);
        for assumed in assumed {
            let _ = writeln!(script, "(assert {})", self.terms.name(*assumed));
        }
        let ask = self.terms.asked(&roots);
        for there in theres {
            let _ = writeln!(script, "(push 1)\n(assert {})\n{ask}(pop 1)", self.terms.name(there));
        }
        let models = answers(solver, &script, 3).unwrap_or_default().into_iter().map(|answer| match answer {
            Sat::Yes(model) => Some(self.respelled(&model.into_iter().chain(texts.clone()).collect())),
            Sat::No | Sat::Unknown => None,
        });
        models.collect()
    }
}

impl Cut<'_> {
    pub(super) const fn most(&self) -> usize {
        self.most
    }

    /// Reports whether it is the value of a field or below it.
    pub(super) fn is_within(&self, field: &str) -> bool {
        let below = self.field.strip_prefix(field);
        field.is_empty() || below.is_some_and(|below| below.is_empty() || below.starts_with(['.', '[']))
    }

    /// Returns the object with so many items in the list or map: with equal items where it may have those, and with different ones. None if
    /// that are more than are tried.
    pub(super) fn lengthened(&self, object: &Json, length: usize) -> Vec<Json> {
        if length > MOST {
            return Vec::new();
        }
        let lengthen = |apart| {
            let mut object = object.clone();
            let place = self.way.iter().try_fold(&mut object, |value, segment| match (segment, value) {
                (Segment::Property(name), value) => value.get_mut(&**name),
                (Segment::First, Json::Array(items)) => items.first_mut(),
                (Segment::First, Json::Object(entries)) => entries.values_mut().next(),
                (Segment::First, _) => None,
            })?;
            let last = match &*place {
                Json::Array(items) => items.last(),
                Json::Object(entries) => entries.values().next_back(),
                _ => None,
            };
            if last?.to_string().len().saturating_mul(length) > MOST_BYTES {
                return None;
            }
            match place {
                Json::Array(items) => self.lengthen_list(items, length, apart)?,
                Json::Object(entries) => lengthen_map(entries, length)?,
                _ => return None,
            }
            Some(object)
        };
        let is_list_without_keys = self.schema.items.is_some()
            && !matches!(self.schema.list_type, Some(ListType::Set | ListType::Map));
        let ways: &[bool] = if is_list_without_keys { &[false, true] } else { &[true] };
        ways.iter().filter_map(|apart| lengthen(*apart)).collect()
    }

    fn lengthen_list(&self, items: &mut Vec<Json>, length: usize, apart: bool) -> Option<()> {
        let (last, schema) = (items.last()?.clone(), self.schema.items.as_deref()?);
        let keys: &[Box<str>] = match self.schema.list_type {
            Some(ListType::Map) => &self.schema.list_map_keys,
            _ => &[],
        };
        let identity = |item: &Json| {
            let keys: Vec<String> =
                keys.iter().map(|key| item.get(&**key).unwrap_or_default().to_string()).collect();
            if keys.is_empty() { item.to_string() } else { keys.join(",") }
        };
        let mut known: HashSet<String> = items.iter().map(identity).collect();
        // Some numbers may give a value that was there before.
        for nth in 0..length.saturating_mul(2) {
            if items.len() >= length {
                break;
            }
            let next = if apart {
                others(&last, schema, keys, nth).into_iter().find(|item| known.insert(identity(item)))
            } else {
                Some(last.clone())
            };
            items.extend(next);
        }
        (items.len() >= length).then_some(())
    }
}

fn lengthen_map(entries: &mut serde_json::Map<String, Json>, length: usize) -> Option<()> {
    let (key, value) = entries.iter().next_back().map(|(key, value)| (key.clone(), value.clone()))?;
    for nth in 0..length.saturating_mul(2) {
        if entries.len() >= length {
            break;
        }
        entries.entry(format!("{key}{nth}")).or_insert_with(|| value.clone());
    }
    (entries.len() >= length).then_some(())
}

/// Returns items like one, but different from it: in one of the keys if it is found by keys.
fn others(item: &Json, schema: &Schema, keys: &[Box<str>], nth: usize) -> Vec<Json> {
    if keys.is_empty() {
        return scalars(item, schema, nth);
    }
    let mut found = Vec::new();
    for key in keys {
        let (Some(value), Some(schema)) = (item.get(&**key), schema.properties.get(key)) else { continue };
        for other in scalars(value, schema, nth) {
            let mut item = item.clone();
            if let Some(value) = item.get_mut(&**key) {
                *value = other;
                found.push(item);
            }
        }
    }
    found
}

/// Returns scalars like one, valid for the schema and different for each number; none for values that are no scalars.
fn scalars(value: &Json, schema: &Schema, nth: usize) -> Vec<Json> {
    if schema.checks.enumeration.iter().next().is_some() {
        return schema.checks.enumeration.get(nth).cloned().into_iter().collect();
    }
    let step = i64::try_from(nth).unwrap_or(i64::MAX).saturating_add(1);
    let others: Vec<Json> = match value {
        Json::String(text) => {
            let of_format = schema.checks.format.as_deref().and_then(|it| sample::nth_of_format(it, nth));
            let letters = letters(nth);
            let texts = [format!("{text}{nth}"), format!("{text}-{nth}"), format!("{text}{letters}")];
            let texts = of_format.into_iter().chain(texts).chain([letters, nth.to_string()]);
            texts.map(Json::from).collect()
        }
        Json::Number(number) => {
            let number = number.as_i64().unwrap_or_default();
            [number.checked_add(step), number.checked_sub(step)]
                .into_iter()
                .flatten()
                .map(Json::from)
                .collect()
        }
        _ => Vec::new(),
    };
    let is_valid =
        |value: &Json| schema::validate(value, schema, None, &Path::Nil, &Pace::new(None)).is_empty();
    others.into_iter().filter(is_valid).collect()
}

/// Writes a number with the letters as digits.
fn letters(mut number: usize) -> String {
    let mut text = String::new();
    loop {
        let digit = u8::try_from(number.rem_euclid(26)).unwrap_or_default();
        text.insert(0, char::from(b'a'.saturating_add(digit)));
        number = number.div_euclid(26);
        if number == 0 {
            return text;
        }
        number = number.saturating_sub(1);
    }
}
