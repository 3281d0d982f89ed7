//! Defines the search space: the states of a field or expression, the atoms that determine them, and the objects to start from.
//!
//! Values come from the schema (enums, booleans, samples), from constants that rules compare a field with, and from given objects. A
//! free string field has the strings that rules name, and two that represent all others.

use admit_policy::schema::Schema;
use admit_policy::{UserInfo, init};
use serde_json::{Value, json};

use super::atoms::{self, Atom, AtomKind, Reading, Setting};
use super::bases::{sample, with_identity};
use super::expression::Expression;
use super::field::{FieldPath, Step};
use super::judge::Judge;
use super::moves::{Material, Move};
use super::picture::{Limit, PictureError};
use super::rules::Rule;
use super::subject::Subject;
use super::values::{self, ABSENT, OTHER, State, StateValue, at, pattern_of};

/// The maximum number of given objects to start from: each is written, and repaired, for every state.
const MOST_GIVEN: usize = 64;
/// The maximum number of given objects to choose those from.
const MOST_ASKED: usize = 400;
/// The maximum number of states; all pairs of them are tried.
const MOST_STATES: usize = 64;
/// The maximum number of combinations of values that determine the state.
pub(super) const MOST_COMBINATIONS: usize = 200;
/// The maximum number of ways into one state to try from one object.
const MOST_WAYS: usize = 4;

/// A state of the drawn subject.
#[derive(Debug)]
pub(super) enum Drawn {
    Field(FieldPath),
    State(Box<Expression>),
}

/// One way for an object to be in a state.
#[derive(Debug)]
struct Way {
    state: usize,
    settings: Vec<Setting>,
    readings: Vec<Reading>,
}

/// The search space.
#[derive(Debug)]
pub(super) struct Space<'s> {
    pub(super) subject: Subject,
    drawn: Drawn,
    /// Patterns of the fields that determine the state.
    pub(super) patterns: Vec<Vec<String>>,
    pub(super) states: Vec<State>,
    /// What determines the state and the selection of objects; an error if that is not a few values.
    pub(super) atoms: Result<Vec<Atom>, Limit>,
    /// The condition on considered objects.
    pub(super) only: Option<Expression>,
    ways: Vec<Way>,
    pub(super) moves: Vec<Move>,
    /// Objects to start from, the schema's sample first.
    pub(super) bases: Vec<Value>,
    schema: Option<&'s Schema>,
}

/// The inputs of a space.
pub(super) struct Request<'r> {
    pub(super) subject: &'r Subject,
    pub(super) drawn: Drawn,
    pub(super) only: Option<Expression>,
    pub(super) atoms: Result<Vec<Atom>, Limit>,
    pub(super) rules: &'r [Rule],
    pub(super) given: &'r [&'r Value],
}

impl<'s> Space<'s> {
    /// # Errors
    /// If there are too many states, or only one.
    pub(super) fn new(judge: &'s Judge<'_>, request: Request<'_>) -> Result<Self, PictureError> {
        let Request { subject, drawn, only, atoms, rules, given } = request;
        let schema = judge.definition().map(|(_, version)| version.schema());
        let bases = bases(judge, given);
        let patterns = match &drawn {
            Drawn::Field(path) => vec![values::pattern(path)],
            Drawn::State(expression) => expression.reads.paths().cloned().collect(),
        };
        let more: Vec<Vec<String>> =
            only.iter().flat_map(|only| only.reads.paths()).chain(&patterns).cloned().collect();
        let material = Material { schema, rules, bases: &bases };
        let field = if let Drawn::Field(path) = &drawn { Some(path) } else { None };
        let moves = material.moves(&more, field);
        let states = match &drawn {
            Drawn::Field(path) => {
                let pattern = values::pattern(path);
                let of_schema = schema.and_then(|schema| at(schema, &pattern));
                values::states(of_schema, rules, &pattern, path, &bases)
            }
            Drawn::State(_) => Vec::new(),
        };
        let subject = subject.clone();
        let mut space =
            Self { subject, drawn, patterns, states, atoms, only, ways: Vec::new(), moves, bases, schema };
        if let Drawn::State(_) = space.drawn {
            space.find_states();
        }
        let field = space.subject.to_string();
        match space.states.len() {
            count if count > MOST_STATES => Err(PictureError::TooMany { field, count, most: MOST_STATES }),
            0 | 1 => Err(PictureError::Unbounded { field }),
            _ => {
                space.add_field();
                Ok(space)
            }
        }
    }

    /// Adds the drawn field as the first atom.
    fn add_field(&mut self) {
        let (Drawn::Field(path), Ok(atoms)) = (&self.drawn, &mut self.atoms) else { return };
        if values::may_be_null(self.schema, &values::pattern(path)) {
            self.atoms = Err(Limit::Reads);
            return;
        }
        let is_named = |state: &State| match &state.value {
            StateValue::Is(value) => Some(value.clone()),
            StateValue::Absent | StateValue::Other(_) | StateValue::Failed => None,
        };
        let named: Vec<Value> = self.states.iter().filter_map(is_named).collect();
        let others = self.states.iter().find_map(|state| match &state.value {
            StateValue::Other(two) => Some(two.clone()),
            StateValue::Absent | StateValue::Is(_) | StateValue::Failed => None,
        });
        let kind = match others {
            Some(others) => AtomKind::Text { named, others },
            None => AtomKind::Values(named),
        };
        atoms.retain(|atom| atom.path != *path);
        atoms.insert(0, Atom { path: path.clone(), kind });
    }

    /// Finds the states of the expression: its values for all combinations of what it reads, else the constants in it.
    fn find_states(&mut self) {
        let Drawn::State(expression) = &self.drawn else { return };
        let named =
            |value: &Value| State { name: values::name_of(value), value: StateValue::Is(value.clone()) };
        let mut states: Vec<State> = expression.outcomes.iter().map(named).collect();
        if states.is_empty() {
            states.extend([json!(true), json!(false)].iter().map(named));
        }
        let objects = match (&self.atoms, self.bases.first()) {
            (Ok(atoms), Some(base)) => {
                atoms::combinations(atoms, base, MOST_COMBINATIONS, &|steps| self.filled(steps))
                    .ok_or(Limit::Combinations { fields: atoms.len(), most: MOST_COMBINATIONS })
            }
            (Err(limit), _) => Err(limit.clone()),
            (Ok(_), None) => Ok(Vec::new()),
        };
        let mut found: Vec<(State, Value)> = Vec::new();
        for object in objects.iter().flatten().chain(&self.bases) {
            let state = match expression.of(object) {
                None => State { name: FAILED.to_owned(), value: StateValue::Failed },
                Some(value) => match self.others_like(&value) {
                    Some(two) if !expression.outcomes.contains(&value) => {
                        State { name: OTHER.to_owned(), value: StateValue::Other(two) }
                    }
                    _ if value.is_string() || value.is_boolean() => named(&value),
                    _ => State { name: FAILED.to_owned(), value: StateValue::Failed },
                },
            };
            if !states.contains(&state) && states.len() <= MOST_STATES {
                states.push(state.clone());
            }
            found.push((state, object.clone()));
        }
        // If all combinations were tried, a constant that none of them yields is no state.
        if objects.is_ok() {
            states.retain(|state| found.iter().any(|(own, _)| own == state));
        }
        let count = objects.as_ref().map_or(0, Vec::len);
        if let (Ok(atoms), true) = (&self.atoms, objects.is_ok()) {
            let way = |(state, object): &(State, Value)| {
                Some(Way {
                    state: states.iter().position(|own| own == state)?,
                    settings: atoms.iter().map(|atom| atom.setting_of(object)).collect::<Option<_>>()?,
                    readings: atoms::readings(atoms, object)?,
                })
            };
            self.ways = found.iter().take(count).filter_map(way).collect();
        }
        self.states = states;
        if let Err(limit) = objects {
            self.atoms = Err(limit);
        }
    }

    /// Returns the two strings that represent all others in the field that may have this value.
    fn others_like(&self, value: &Value) -> Option<[Value; 2]> {
        let two = |atom: &Atom| match &atom.kind {
            AtomKind::Text { others, .. } if others.contains(value) => Some(others.clone()),
            _ => None,
        };
        self.atoms.as_ref().ok()?.iter().find_map(two)
    }

    /// Returns the state of an object; `None` for a value outside the known ones.
    pub(super) fn state_of(&self, object: &Value) -> Option<usize> {
        let (value, is_failed) = match &self.drawn {
            Drawn::Field(path) => (path.get(object).cloned(), false),
            Drawn::State(expression) => match expression.of(object) {
                Some(value) if value.is_string() || value.is_boolean() => (Some(value), false),
                _ => (None, true),
            },
        };
        let exact = self.states.iter().position(|state| match (&state.value, &value) {
            (StateValue::Absent, None) => !is_failed,
            (StateValue::Failed, None) => is_failed,
            (StateValue::Is(own), Some(value)) => own == value,
            _ => false,
        });
        exact.or_else(|| {
            let is_text = value.as_ref().is_some_and(Value::is_string);
            self.states.iter().position(|state| is_text && matches!(state.value, StateValue::Other(_)))
        })
    }

    /// Reports whether the object is considered.
    pub(super) fn is_meant(&self, object: &Value) -> bool {
        self.only.as_ref().is_none_or(|only| only.holds(object))
    }

    /// Changes the object to a state in the nearest way; of the representative strings, it takes the one not in use.
    pub(super) fn put(&self, object: &mut Value, state: usize) {
        let path = match &self.drawn {
            Drawn::Field(path) => path,
            Drawn::State(_) => {
                if self.state_of(object) != Some(state)
                    && let Some(next) = self.placed(object, state).into_iter().next()
                {
                    *object = next;
                }
                return;
            }
        };
        match self.states.get(state).map(|state| &state.value) {
            Some(StateValue::Absent) => path.remove(object),
            Some(StateValue::Is(value)) => self.set(object, path, value.clone()),
            Some(StateValue::Other([one, other])) => {
                let next = if path.get(object) == Some(one) { other } else { one };
                self.set(object, path, next.clone());
            }
            Some(StateValue::Failed) | None => {}
        }
    }

    /// Returns the object in a state, in the ways that change the least.
    pub(super) fn placed(&self, object: &Value, state: usize) -> Vec<Value> {
        let (Drawn::State(_), Ok(atoms)) = (&self.drawn, &self.atoms) else {
            return self.placed_otherwise(object, state);
        };
        let now = atoms::readings(atoms, object);
        let differing = |way: &&Way| {
            let same = now
                .as_ref()
                .map_or(0, |now| now.iter().zip(&way.readings).filter(|(own, other)| own == other).count());
            way.readings.len().saturating_sub(same)
        };
        let mut ways: Vec<&Way> = self.ways.iter().filter(|way| way.state == state).collect();
        ways.sort_by_key(differing);
        let apply = |way: &Way| {
            let mut object = object.clone();
            for (atom, setting) in atoms.iter().zip(&way.settings) {
                if atom.setting_of(&object).as_ref() != Some(setting) {
                    atom.apply(&mut object, setting, &|steps| self.filled(steps));
                }
            }
            object
        };
        let placed = ways.into_iter().map(apply).filter(|object| self.state_of(object) == Some(state));
        placed.take(MOST_WAYS).collect()
    }

    /// Copies to the object a given object's fields around the drawn one, or its status or spec, if that has the state.
    pub(super) fn like_given<'v>(
        &'v self,
        object: &'v Value,
        state: usize,
    ) -> impl Iterator<Item = Value> + 'v {
        let part = match &self.drawn {
            Drawn::Field(path) => {
                path.0.split_last().map(|(_, parents)| parents.to_vec()).unwrap_or_default()
            }
            Drawn::State(_) => self
                .patterns
                .iter()
                .filter_map(|pattern| pattern.first())
                .take(1)
                .cloned()
                .map(Step::Name)
                .collect(),
        };
        let part = FieldPath(part);
        let there = self.bases.iter().filter(move |base| self.state_of(base) == Some(state));
        there.filter_map(move |base| {
            let whole = part.get(base).filter(|_| !part.0.is_empty())?.clone();
            let mut next = object.clone();
            self.set(&mut next, &part, whole);
            (self.state_of(&next) == Some(state)).then_some(next)
        })
    }

    /// Without atoms: sets the field, or makes a single change that leads to the state.
    fn placed_otherwise(&self, object: &Value, state: usize) -> Vec<Value> {
        if let Drawn::Field(path) = &self.drawn {
            let mut next = object.clone();
            self.put(&mut next, state);
            let mut all = vec![next];
            let is_absent = self.states.get(state).is_some_and(|state| state.value == StateValue::Absent);
            // A parent may be removed with the field, but never metadata.
            let parents = (1..path.0.len()).rev().filter_map(|depth| path.0.get(..depth));
            let is_metadata = |steps: &[Step]| steps == [Step::Name("metadata".to_owned())];
            for steps in parents.filter(|steps| is_absent && !is_metadata(steps)) {
                let mut without = object.clone();
                FieldPath(steps.to_vec()).remove(&mut without);
                all.push(without);
            }
            return all;
        }
        let changed = self.moves.iter().map(|change| {
            let mut next = object.clone();
            self.make(&mut next, change);
            next
        });
        let all = std::iter::once(object.clone()).chain(changed);
        all.filter(|object| self.state_of(object) == Some(state)).take(MOST_WAYS).collect()
    }

    /// Makes the change, and restores the state if the change includes the drawn field.
    pub(super) fn change(&self, object: &mut Value, change: &Move, state: usize) {
        self.make(object, change);
        match &self.drawn {
            Drawn::Field(path) if path.is_within(&change.path.0) => self.put(object, state),
            Drawn::State(_) if change.pattern.len() == 1 => self.put(object, state),
            Drawn::Field(_) | Drawn::State(_) => {}
        }
    }

    fn make(&self, object: &mut Value, change: &Move) {
        match &change.value {
            Some(value) => self.set(object, &change.path, value.clone()),
            None => change.path.remove(object),
        }
    }

    pub(super) fn set(&self, object: &mut Value, path: &FieldPath, value: Value) {
        path.set(object, value, &|steps| self.filled(steps));
    }

    pub(super) fn filled(&self, steps: &[Step]) -> Value {
        let schema = self.schema.and_then(|schema| at(schema, &pattern_of(steps)));
        schema.map_or(Value::Null, init::sample)
    }

    /// Returns the drawn field; `None` if an expression is drawn.
    pub(super) const fn field(&self) -> Option<&FieldPath> {
        match &self.drawn {
            Drawn::Field(path) => Some(path),
            Drawn::State(_) => None,
        }
    }

    /// Reports whether the change is in the same list entry as the drawn field, if both are in that list.
    pub(super) fn is_near(&self, change: &Move) -> bool {
        let Some(field) = self.field() else { return true };
        let both = field.0.iter().zip(&change.path.0);
        let apart = both.take_while(|(own, other)| own == other || is_entry(own) && is_entry(other));
        !apart.into_iter().any(|(own, other)| own != other)
    }

    /// Reports whether the pattern is that of the drawn field or of a parent.
    pub(super) fn is_around(&self, pattern: &[String]) -> bool {
        self.field().is_some_and(|field| values::pattern(field).starts_with(pattern))
    }
}

const fn is_entry(step: &Step) -> bool {
    matches!(step, Step::Entry { .. })
}

/// The name of the state in which the expression fails.
const FAILED: &str = "error";

/// Returns the schema's sample and the given objects.
fn bases(judge: &Judge<'_>, given: &[&Value]) -> Vec<Value> {
    let sample = sample(judge);
    let mut objects: Vec<(usize, Value)> = Vec::new();
    for object in given.iter().take(MOST_ASKED) {
        let object = judge.stored(&with_identity(object, judge));
        if object != sample && !objects.iter().any(|(_, own)| *own == object) {
            objects.push((objections(judge, &object), object));
        }
    }
    // Valid objects come first: their parts fit together.
    objects.sort_by_key(|(objections, _)| *objections);
    std::iter::once(sample).chain(objects.into_iter().map(|(_, object)| object)).take(MOST_GIVEN).collect()
}

/// Counts the objections to an object that is written with its status.
fn objections(judge: &Judge<'_>, object: &Value) -> usize {
    let mut bare = object.clone();
    if let (true, Some(fields)) = (judge.status, bare.as_object_mut()) {
        fields.shift_remove("status");
    }
    let old = judge.status.then_some(&bare);
    judge.write(old, object, &UserInfo::default()).objections.len()
}

/// Reports whether a field has few enough states to be drawn.
pub(super) fn is_drawable(states: &[State]) -> bool {
    states.len() > 1 && states.len() <= MOST_STATES && states.iter().any(|state| state.name != ABSENT)
}
