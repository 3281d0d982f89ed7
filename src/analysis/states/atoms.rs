//! Defines atoms, the few facts about an object whose combinations are all tried: the value of a field, the presence of a field, and
//! the membership of an element in a list.
//!
//! A rule that reads nothing else cannot distinguish objects with equal atoms ([`super::local`]).

use serde_json::{Value, json};

use super::field::{FieldPath, Filler, Step, reached};

/// One fact about an object.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Atom {
    pub(super) path: FieldPath,
    pub(super) kind: AtomKind,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum AtomKind {
    /// A field with finitely many values: all of them.
    Values(Vec<Value>),
    /// A string field: the strings that rules name, and two that represent all others.
    Text { named: Vec<Value>, others: [Value; 2] },
    /// Whether a field is present, with a value to use if so.
    Presence(Value),
    /// Whether a list contains the element.
    Member(Value),
}

/// The state of an atom in an object.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Reading {
    /// How many segments of the path exist.
    depth: usize,
    value: Option<Value>,
}

/// A state to which an atom can be set.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Setting {
    /// This many segments of the path exist; the rest is removed.
    Missing(usize),
    Value(Value),
    /// The list exists, with or without the element.
    Member(bool),
}

impl Atom {
    /// Reads the atom from an object; `None` for a value outside the known ones.
    pub(super) fn read(&self, object: &Value) -> Option<Reading> {
        let depth = depth_of(&self.path, object);
        let found = self.path.get(object);
        let value = match (&self.kind, found) {
            (_, None) => None,
            (AtomKind::Values(values), Some(value)) => Some(values.iter().find(|own| *own == value)?.clone()),
            (AtomKind::Text { .. }, Some(value)) => Some(value.as_str().map(Value::from)?),
            (AtomKind::Presence(_), Some(_)) => Some(json!(true)),
            (AtomKind::Member(item), Some(value)) => Some(json!(value.as_array()?.contains(item))),
        };
        Some(Reading {
            depth: depth.min(self.path.0.len().saturating_sub(usize::from(value.is_none()))),
            value,
        })
    }

    /// Returns the setting that reproduces the object's state.
    pub(super) fn setting_of(&self, object: &Value) -> Option<Setting> {
        let Reading { depth, value } = self.read(object)?;
        Some(match (&self.kind, value) {
            (_, None) => Setting::Missing(depth),
            (AtomKind::Member(_), Some(has)) => Setting::Member(has == json!(true)),
            (AtomKind::Presence(value), Some(_)) => Setting::Value(value.clone()),
            (AtomKind::Values(_) | AtomKind::Text { .. }, Some(value)) => Setting::Value(value),
        })
    }

    pub(super) fn settings(&self) -> Vec<Setting> {
        let mut all: Vec<Setting> = match &self.kind {
            AtomKind::Values(values) => values.iter().cloned().map(Setting::Value).collect(),
            AtomKind::Text { named, others } => {
                named.iter().chain(others).cloned().map(Setting::Value).collect()
            }
            AtomKind::Presence(value) => vec![Setting::Value(value.clone())],
            AtomKind::Member(_) => vec![Setting::Member(false), Setting::Member(true)],
        };
        let is_metadata = |depth: usize| {
            // Metadata is always present.
            depth == 0 && self.path.0.first() == Some(&Step::Name("metadata".to_owned()))
        };
        all.extend((0..self.path.0.len()).rev().filter(|depth| !is_metadata(*depth)).map(Setting::Missing));
        all
    }

    pub(super) fn apply(&self, object: &mut Value, setting: &Setting, filler: Filler<'_>) {
        match (setting, &self.kind) {
            (Setting::Value(value), _) => self.path.set(object, value.clone(), filler),
            (Setting::Missing(depth), _) => {
                // The part of the path before it exists.
                if let Some(steps) = self.path.0.get(..*depth).filter(|steps| !steps.is_empty())
                    && reached(object, steps).is_none_or(Value::is_null)
                {
                    let made = filler(steps);
                    let made = if made.is_null() { empty_before(self.path.0.get(*depth)) } else { made };
                    FieldPath(steps.to_vec()).set(object, made, filler);
                }
                if let Some(steps) = self.path.0.get(..=*depth) {
                    FieldPath(steps.to_vec()).remove(object);
                }
            }
            (Setting::Member(has), AtomKind::Member(item)) => {
                let mut items = self.path.get(object).and_then(Value::as_array).cloned().unwrap_or_default();
                items.retain(|own| own != item);
                if *has {
                    items.push(item.clone());
                }
                self.path.set(object, Value::Array(items), filler);
            }
            (Setting::Member(_), _) => {}
        }
    }
}

fn empty_before(step: Option<&Step>) -> Value {
    if matches!(step, Some(Step::Entry { .. })) { json!([]) } else { json!({}) }
}

/// Reads all atoms; `None` if one has a value outside the known ones.
pub(super) fn readings(atoms: &[Atom], object: &Value) -> Option<Vec<Reading>> {
    atoms.iter().map(|atom| atom.read(object)).collect()
}

/// Builds an object from `base` for each combination; `None` if there are more than `most`.
pub(super) fn combinations(
    atoms: &[Atom],
    base: &Value,
    most: usize,
    filler: Filler<'_>,
) -> Option<Vec<Value>> {
    let mut objects = vec![base.clone()];
    for (at, atom) in atoms.iter().enumerate() {
        let so_far = atoms.get(..=at)?;
        let mut next: Vec<(Vec<Reading>, Value)> = Vec::new();
        for object in &objects {
            for setting in atom.settings() {
                let mut object = object.clone();
                atom.apply(&mut object, &setting, filler);
                let Some(readings) = readings(so_far, &object) else { continue };
                if !next.iter().any(|(own, _)| *own == readings) {
                    next.push((readings, object));
                }
                if next.len() > most {
                    return None;
                }
            }
        }
        objects = next.into_iter().map(|(_, object)| object).collect();
    }
    Some(objects)
}

/// Counts the segments of a path that exist.
fn depth_of(path: &FieldPath, object: &Value) -> usize {
    let steps = &path.0;
    (0..=steps.len())
        .rev()
        .find(|depth| steps.get(..*depth).is_some_and(|so_far| reached(object, so_far).is_some()))
        .unwrap_or(0)
}
