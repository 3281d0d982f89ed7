//! What is tried: the states of a field, the values that other fields may have, and the objects to start from.
//!
//! Values come from the schema (enums, booleans, samples), from the constants that rules compare a field with, and from given
//! objects. A field that may have any text has the texts that rules tell apart, and one that stands for all others.

use admit_policy::init;
use admit_policy::schema::{Schema, SchemaType};
use serde_json::{Map, Value, json};

use super::field::{FieldPath, Step, reached};
use super::judge::{Judge, NAMESPACE};
use super::rules::Rule;
use crate::reads::EACH;

/// Values that are tried of one field that is not drawn: beyond, their pairs are too many to be tried in time.
const MOST_VALUES: usize = 12;
/// Given objects that are started from: each is written, and mended, for every state.
const MOST_GIVEN: usize = 64;
/// Later than any time that objects have: what has to come after another comes then.
const LATE: &str = "2099-01-01T00:00:00Z";
/// Entries of a list that rules tell apart by their keys.
const MOST_ENTRIES: usize = 16;

/// One value of the field, or the values that stand for it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct State {
    pub(super) name: String,
    pub(super) value: StateValue,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum StateValue {
    /// The field is not there.
    Absent,
    Is(Value),
    /// Any other text; two of them, so that one may follow another.
    Other([Value; 2]),
}

/// A change of one field beside the state.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Move {
    pub(super) path: FieldPath,
    pub(super) pattern: Vec<String>,
    /// None where the field is removed.
    pub(super) value: Option<Value>,
}

/// What is tried of one field.
#[derive(Debug)]
pub(super) struct Space<'s> {
    pub(super) subject: FieldPath,
    pub(super) pattern: Vec<String>,
    pub(super) states: Vec<State>,
    pub(super) moves: Vec<Move>,
    /// Objects to start from, the sample of the schema first.
    pub(super) bases: Vec<Value>,
    schema: Option<&'s Schema>,
}

impl<'s> Space<'s> {
    pub(super) fn new(judge: &'s Judge<'_>, rules: &[Rule], subject: FieldPath, given: &[&Value]) -> Self {
        let schema = judge.definition().map(|(_, version)| version.schema());
        let mut bases = vec![sample(judge)];
        for object in given {
            let object = judge.stored(&with_identity(object, judge));
            if bases.len() < MOST_GIVEN && !bases.contains(&object) {
                bases.push(object);
            }
        }
        let pattern = pattern(&subject);
        let states =
            states(schema.and_then(|schema| at(schema, &pattern)), rules, &pattern, &subject, &bases);
        let mut space = Self { subject, pattern, states, moves: Vec::new(), bases, schema };
        space.moves = space.all_moves(rules);
        space
    }

    /// The state of an object; none where it has a value that was not foreseen.
    pub(super) fn state_of(&self, object: &Value) -> Option<usize> {
        let value = self.subject.get(object);
        let exact = self.states.iter().position(|state| match (&state.value, value) {
            (StateValue::Absent, None) => true,
            (StateValue::Is(own), Some(value)) => own == value,
            _ => false,
        });
        exact.or_else(|| {
            let is_text = value.is_some_and(Value::is_string);
            self.states.iter().position(|state| is_text && matches!(state.value, StateValue::Other(_)))
        })
    }

    /// Puts the object into a state; of texts that stand for others, the one that is not there.
    pub(super) fn put(&self, object: &mut Value, state: usize) {
        let Some(state) = self.states.get(state) else { return };
        match &state.value {
            StateValue::Absent => self.subject.remove(object),
            StateValue::Is(value) => self.set(object, &self.subject, value.clone()),
            StateValue::Other([one, other]) => {
                let next = if self.subject.get(object) == Some(one) { other } else { one };
                self.set(object, &self.subject, next.clone());
            }
        }
    }

    /// Makes the change, and keeps the state where the field is within what changes.
    pub(super) fn change(&self, object: &mut Value, change: &Move, state: usize) {
        match &change.value {
            Some(value) => self.set(object, &change.path, value.clone()),
            None => change.path.remove(object),
        }
        if self.subject.is_within(&change.path.0) {
            self.put(object, state);
        }
    }

    pub(super) fn set(&self, object: &mut Value, path: &FieldPath, value: Value) {
        path.set(object, value, &|steps| self.filled(steps));
    }

    fn filled(&self, steps: &[Step]) -> Value {
        let schema = self.schema.and_then(|schema| at(schema, &pattern_of(steps)));
        schema.map_or(Value::Null, init::sample)
    }

    fn all_moves(&self, rules: &[Rule]) -> Vec<Move> {
        let mut patterns: Vec<&Vec<String>> = rules.iter().flat_map(|rule| rule.reads.paths()).collect();
        patterns.sort();
        patterns.dedup();
        let mut moves = Vec::new();
        for pattern in patterns.into_iter().filter(|pattern| may_change(pattern) && **pattern != self.pattern)
        {
            let constants = compared(rules, pattern);
            for path in self.paths(rules, pattern) {
                self.moves_of(&path, pattern, &constants, &mut moves);
            }
        }
        // What was written together is tried together.
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
            if change.path != self.subject && !distinct.contains(&change) {
                distinct.push(change);
            }
        }
        distinct
    }

    /// The paths of a pattern: each list by the keys that rules tell apart.
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

/// Names and namespaces say which object it is, and what it is never changes.
fn may_change(pattern: &[String]) -> bool {
    let names: Vec<&str> = pattern.iter().map(String::as_str).collect();
    !matches!(
        names.as_slice(),
        [] | ["apiVersion" | "kind" | "metadata"] | ["metadata", "name" | "namespace", ..]
    )
}

/// The path with [`EACH`] for the entries of lists.
pub(super) fn pattern(path: &FieldPath) -> Vec<String> {
    pattern_of(&path.0)
}

fn pattern_of(steps: &[Step]) -> Vec<String> {
    let name = |step: &Step| match step {
        Step::Name(name) => name.clone(),
        Step::Entry { .. } => EACH.to_owned(),
    };
    steps.iter().map(name).collect()
}

/// The schema at a pattern.
pub(super) fn at<'s>(schema: &'s Schema, pattern: &[String]) -> Option<&'s Schema> {
    pattern.iter().try_fold(schema, |schema, name| match name.as_str() {
        EACH => schema.items.as_deref().or_else(|| schema.additional_schema()),
        name => schema.properties.get(name).or_else(|| schema.additional_schema()),
    })
}

/// The constants that rules compare with what stands at a pattern.
pub(super) fn compared(rules: &[Rule], pattern: &[String]) -> Vec<Value> {
    let mut constants: Vec<Value> = Vec::new();
    for value in rules.iter().filter_map(|rule| rule.reads.compared.get(pattern)).flatten() {
        if !constants.contains(value) {
            constants.push(value.clone());
        }
    }
    constants
}

/// The entries of a list that rules tell apart by a key; `list` ends in [`EACH`].
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

/// All values of a schema, where they are few.
pub(super) fn listed(schema: &Schema) -> Vec<Value> {
    if schema.is_type(&SchemaType::Boolean) {
        return vec![json!(true), json!(false)];
    }
    schema.checks.enumeration.iter().filter(|member| !member.is_null()).cloned().collect()
}

fn fits(schema: Option<&Schema>, value: &Value) -> bool {
    let Some(schema) = schema else { return !value.is_null() };
    match value {
        Value::String(_) => schema.is_type(&SchemaType::String) || schema.int_or_string,
        Value::Number(number) => {
            schema.is_type(&SchemaType::Number)
                || number.is_i64() && (schema.is_type(&SchemaType::Integer) || schema.int_or_string)
        }
        Value::Bool(_) => schema.is_type(&SchemaType::Boolean),
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    }
}

/// The states of a field; empty where it has more values than can be drawn.
pub(super) fn states(
    schema: Option<&Schema>,
    rules: &[Rule],
    pattern: &[String],
    subject: &FieldPath,
    bases: &[Value],
) -> Vec<State> {
    let mut values = schema.map(listed).unwrap_or_default();
    let is_open = values.is_empty();
    if is_open {
        let is_text =
            schema.is_none_or(|schema| schema.is_type(&SchemaType::String) && !schema.int_or_string);
        let is_free = schema.is_none_or(|schema| schema.checks.format.is_none());
        if !is_text || !is_free {
            return Vec::new();
        }
        values = compared(rules, pattern).into_iter().filter(Value::is_string).collect();
        if values.is_empty() {
            return Vec::new();
        }
    }
    let named = |value: Value| State { name: name_of(&value), value: StateValue::Is(value) };
    let mut states = vec![State { name: ABSENT.to_owned(), value: StateValue::Absent }];
    let others = is_open.then(|| others(&values, subject, bases));
    states.extend(values.into_iter().map(named));
    states.extend(others.map(|two| State { name: OTHER.to_owned(), value: StateValue::Other(two) }));
    states
}

/// The name of the state in which the field is not there.
pub(super) const ABSENT: &str = "absent";
/// The name of the state that stands for all values that rules do not tell apart.
pub(super) const OTHER: &str = "other";

/// Two texts that rules do not name: of given objects, or made.
fn others(named: &[Value], subject: &FieldPath, bases: &[Value]) -> [Value; 2] {
    let of_bases = bases.iter().filter_map(|base| subject.get(base));
    let unnamed = of_bases.filter(|value| value.is_string() && !named.contains(value)).cloned();
    let mut two: Vec<Value> = Vec::new();
    for value in unnamed.chain([json!("SomethingElse"), json!("AnotherThing"), json!("AThirdThing")]) {
        if !two.contains(&value) && !named.contains(&value) {
            two.push(value);
        }
    }
    let mut two = two.into_iter();
    [two.next().unwrap_or_default(), two.next().unwrap_or_default()]
}

fn name_of(value: &Value) -> String {
    match value {
        Value::String(text) if text.is_empty() => "''".to_owned(),
        Value::String(text) if text == ABSENT || text == OTHER => format!("'{text}'"),
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

/// The least object of the kind that its schema takes.
fn sample(judge: &Judge<'_>) -> Value {
    let mut object = json!({"apiVersion": judge.kind.api_version(), "kind": judge.kind.kind});
    if let Some((_, version)) = judge.definition() {
        let schema = version.schema();
        let required = Some(init::sample(schema)).filter(Value::is_object);
        let parts = required.as_ref().and_then(Value::as_object).into_iter().flatten();
        let spec = schema.properties.get("spec").map(|spec| ("spec", init::sample(spec)));
        if let Some(fields) = object.as_object_mut() {
            parts.for_each(|(name, value)| drop(fields.insert(name.clone(), value.clone())));
            if let Some((name, value)) = spec {
                fields.entry(name).or_insert(value);
            }
        }
    }
    judge.stored(&with_identity(&object, judge))
}

/// The object under the name that all that is tried has, without what a server wrote.
fn with_identity(object: &Value, judge: &Judge<'_>) -> Value {
    let mut object = object.clone();
    let Some(fields) = object.as_object_mut() else { return object };
    fields.insert("apiVersion".to_owned(), json!(judge.kind.api_version()));
    let kept = ["labels", "annotations", "finalizers", "ownerReferences"];
    let old = fields.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
    let name = old.get("name").cloned().unwrap_or_else(|| json!("sample"));
    let mut metadata: Map<String, Value> = Map::new();
    metadata.insert("name".to_owned(), name);
    if judge.is_namespaced() {
        metadata.insert("namespace".to_owned(), json!(NAMESPACE));
    }
    metadata.extend(old.into_iter().filter(|(key, _)| kept.contains(&key.as_str())));
    fields.insert("metadata".to_owned(), Value::Object(metadata));
    object
}

/// Texts of objects that rules look up, whole and split, as names of users.
pub(super) fn texts_of(value: &Value, separators: &[&str], texts: &mut Vec<String>) {
    match value {
        Value::String(text) => {
            texts.push(text.clone());
            let parts = separators.iter().filter(|separator| !separator.is_empty());
            texts.extend(parts.flat_map(|separator| text.split(separator)).map(ToOwned::to_owned));
        }
        Value::Array(items) => items.iter().for_each(|item| texts_of(item, separators, texts)),
        Value::Object(fields) => fields.values().for_each(|field| texts_of(field, separators, texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Which of the ancestors of a path an object has: how many steps lead somewhere.
pub(super) fn depth_of(path: &FieldPath, object: &Value) -> usize {
    let steps = &path.0;
    (0..=steps.len())
        .rev()
        .find(|depth| steps.get(..*depth).is_some_and(|so_far| reached(object, so_far).is_some()))
        .unwrap_or(0)
}

/// Whether the path goes through a list.
pub(super) fn is_in_list(path: &FieldPath) -> bool {
    path.0.iter().any(|step| matches!(step, Step::Entry { .. }))
}

/// Paths by their pattern, those without lists.
pub(super) fn plain_path(pattern: &[String]) -> Option<FieldPath> {
    let is_plain = !pattern.is_empty() && pattern.iter().all(|name| name != EACH);
    is_plain.then(|| FieldPath(pattern.iter().cloned().map(Step::Name).collect()))
}
