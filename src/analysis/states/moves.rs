//! Generates changes of fields beside the drawn one: values that rules read, those of the schema, and those of given objects.

use admit_policy::init;
use admit_policy::schema::Schema;
use serde_json::{Value, json};

use super::field::{FieldPath, Step};
use super::rules::Rule;
use super::values::{at, compared, fits, listed, pattern};
use crate::reads::EACH;

/// The maximum number of values per other field: with more, trying all pairs takes too long.
const MOST_VALUES: usize = 12;
/// The maximum number of changes.
const MOST_MOVES: usize = 600;
/// A time later than any in objects, for fields that must be later than another.
const LATE: &str = "2099-01-01T00:00:00Z";
/// The maximum number of list entries with keys that rules name.
const MOST_ENTRIES: usize = 16;

/// A change of one field other than the state.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Move {
    pub(super) path: FieldPath,
    pub(super) pattern: Vec<String>,
    /// The new value; `None` removes the field.
    pub(super) value: Option<Value>,
}

/// The sources of changes.
pub(super) struct Material<'m> {
    pub(super) schema: Option<&'m Schema>,
    pub(super) rules: &'m [Rule],
    pub(super) bases: &'m [Value],
}

impl Material<'_> {
    /// Generates all changes of fields that rules read or `more` names, except of `subject` alone.
    pub(super) fn moves(&self, more: &[Vec<String>], subject: Option<&FieldPath>) -> Vec<Move> {
        let read = self.rules.iter().flat_map(|rule| rule.reads.paths());
        let mut patterns: Vec<&Vec<String>> = read.chain(more).collect();
        patterns.sort();
        patterns.dedup();
        let mut moves = Vec::new();
        for pattern in patterns.into_iter().filter(|pattern| may_change(pattern)) {
            let constants = compared(self.rules, pattern);
            for path in self.paths(self.rules, pattern) {
                self.moves_of(&path, pattern, &constants, &mut moves);
            }
        }
        // Values that occur together in a given object are tried together.
        for part in ["spec", "status"] {
            let path = FieldPath(vec![Step::Name(part.to_owned())]);
            let whole = self.bases.iter().filter_map(|base| path.get(base)).cloned();
            moves.extend(whole.map(|value| Move {
                path: path.clone(),
                pattern: pattern(&path),
                value: Some(value),
            }));
        }
        let mut distinct: Vec<Move> = Vec::with_capacity(moves.len());
        for change in moves {
            if distinct.len() >= MOST_MOVES {
                break;
            }
            if Some(&change.path) != subject && !distinct.contains(&change) {
                distinct.push(change);
            }
        }
        distinct
    }

    /// Returns the paths of a pattern; list entries are those whose keys rules name.
    fn paths(&self, rules: &[Rule], pattern: &[String]) -> Vec<FieldPath> {
        let mut paths = vec![Vec::new()];
        for (depth, name) in pattern.iter().enumerate() {
            let so_far = pattern.get(..=depth).unwrap_or_default();
            if name == EACH {
                let entries = entries(self.schema, rules, so_far);
                paths = paths
                    .iter()
                    .flat_map(|path: &Vec<Step>| entries.iter().map(|entry| with(path, entry.clone())))
                    .take(MOST_ENTRIES)
                    .collect();
            } else {
                paths = paths.iter().map(|path| with(path, Step::Name(name.clone()))).collect();
            }
        }
        paths.into_iter().map(FieldPath).collect()
    }

    fn moves_of(&self, path: &FieldPath, pattern: &[String], constants: &[Value], moves: &mut Vec<Move>) {
        let schema = self.schema.and_then(|schema| at(schema, pattern));
        let change = |value| Move { path: path.clone(), pattern: pattern.to_vec(), value };
        let mut values = Vec::new();
        if let Some(schema) = schema {
            values.extend(listed(schema));
        }
        let of_bases = self.bases.iter().filter_map(|base| path.get(base)).cloned();
        let is_scalar = schema.is_none_or(|schema| schema.properties.is_empty() && schema.items.is_none());
        if values.is_empty() && is_scalar {
            values.extend(constants.iter().filter(|value| fits(schema, value)).cloned());
            values.extend(
                constants.iter().filter_map(Value::as_i64).filter_map(|n| n.checked_add(1)).map(Value::from),
            );
        }
        values.extend(of_bases);
        if let Some(schema) = schema {
            values.push(init::sample(schema));
            if schema.checks.format.as_deref() == Some("date-time") {
                values.insert(0, json!(LATE));
            }
        }
        let mut distinct = Vec::new();
        for value in values {
            if !distinct.contains(&value) && distinct.len() < MOST_VALUES {
                distinct.push(value);
            }
        }
        moves.extend(distinct.into_iter().map(Some).map(change));
        let (last, parents) =
            pattern.split_last().map(|(last, parents)| (last.as_str(), parents)).unwrap_or(("", &[]));
        let parent = self.schema.and_then(|schema| at(schema, parents));
        if !parent.is_some_and(|parent| parent.checks.required.iter().any(|name| &**name == last)) {
            moves.push(change(None));
        }
    }
}

fn with(path: &[Step], step: Step) -> Vec<Step> {
    path.iter().cloned().chain([step]).collect()
}

/// Reports whether a field may change: name and namespace identify the object, and its kind is fixed.
fn may_change(pattern: &[String]) -> bool {
    let names: Vec<&str> = pattern.iter().map(String::as_str).collect();
    !matches!(
        names.as_slice(),
        [] | ["apiVersion" | "kind" | "metadata"] | ["metadata", "name" | "namespace", ..]
    )
}

/// Returns the list entries that rules select by a key; `list` ends in [`EACH`].
pub(super) fn entries(schema: Option<&Schema>, rules: &[Rule], list: &[String]) -> Vec<Step> {
    let own = list.split_last().and_then(|(_, parents)| at(schema?, parents));
    let by_schema = own.and_then(|list| list.list_map_keys.first()).map(|key| key.to_string());
    let keys = by_schema.map_or_else(|| vec!["type".to_owned(), "name".to_owned()], |key| vec![key]);
    for key in keys {
        let pattern: Vec<String> = list.iter().cloned().chain([key.clone()]).collect();
        let constants = compared(rules, &pattern);
        let texts: Vec<&str> =
            constants.iter().filter_map(Value::as_str).filter(|text| !text.is_empty()).collect();
        if !texts.is_empty() {
            let entry = |value: &str| Step::Entry { key: key.clone(), value: value.to_owned() };
            return texts.into_iter().take(MOST_ENTRIES).map(entry).collect();
        }
    }
    Vec::new()
}
