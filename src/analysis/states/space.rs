//! What is tried: the states of a field or of an expression, the atoms that they are made of, and the objects to start from.
//!
//! Values come from the schema (enums, booleans, samples), from the constants that rules compare a field with, and from given
//! objects. A field that may have any text has the texts that rules tell apart, and one that stands for all others.

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

/// Given objects that are started from: each is written, and mended, for every state.
const MOST_GIVEN: usize = 64;
/// Given objects that are looked at, to find those.
const MOST_ASKED: usize = 400;
/// States of a picture; their pairs are all asked.
const MOST_STATES: usize = 64;
/// Combinations of values that a state is read from.
pub(super) const MOST_COMBINATIONS: usize = 200;
/// Ways into one state that are tried from one object.
const MOST_WAYS: usize = 4;

/// What is drawn, ready to be asked.
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

/// What is tried.
#[derive(Debug)]
pub(super) struct Space<'s> {
    pub(super) subject: Subject,
    drawn: Drawn,
    /// Of the fields that states are read from.
    pub(super) patterns: Vec<Vec<String>>,
    pub(super) states: Vec<State>,
    /// What states are read from, and which objects are meant; none where these are no few values.
    pub(super) atoms: Result<Vec<Atom>, Limit>,
    /// Which objects are meant.
    pub(super) only: Option<Expression>,
    ways: Vec<Way>,
    pub(super) moves: Vec<Move>,
    /// Objects to start from, the sample of the schema first.
    pub(super) bases: Vec<Value>,
    schema: Option<&'s Schema>,
}

/// What a space is made of.
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
    /// When there are too many states, or only one.
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

    /// The field that is drawn is an atom itself, the first.
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

    /// The states that the expression comes to: in all combinations of what it reads, else the constants in it.
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
        // A constant that no combination comes to is none, where all were tried.
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

    /// The two texts that stand for all others in the field that may have this one.
    fn others_like(&self, value: &Value) -> Option<[Value; 2]> {
        let two = |atom: &Atom| match &atom.kind {
            AtomKind::Text { others, .. } if others.contains(value) => Some(others.clone()),
            _ => None,
        };
        self.atoms.as_ref().ok()?.iter().find_map(two)
    }

    /// The state of an object; none where it has a value that was not foreseen.
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

    /// Whether it is one of the objects that are meant.
    pub(super) fn is_meant(&self, object: &Value) -> bool {
        self.only.as_ref().is_none_or(|only| only.holds(object))
    }

    /// Puts the object into a state by the nearest way; of texts that stand for others, the one that is not there.
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

    /// The object in a state, by the ways that change the least.
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

    /// The object with what a given one has around the field, or in its status or spec, that is in the state.
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

    /// Where no few values decide: by the value of the field, or by one change that leads there.
    fn placed_otherwise(&self, object: &Value, state: usize) -> Vec<Value> {
        if let Drawn::Field(path) = &self.drawn {
            let mut next = object.clone();
            self.put(&mut next, state);
            let mut all = vec![next];
            let is_absent = self.states.get(state).is_some_and(|state| state.value == StateValue::Absent);
            // What the field is in may go with it; metadata never does.
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

    /// Makes the change, and keeps the state where the field is within what changes.
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

    /// The field that is drawn; none where an expression is.
    pub(super) const fn field(&self) -> Option<&FieldPath> {
        match &self.drawn {
            Drawn::Field(path) => Some(path),
            Drawn::State(_) => None,
        }
    }

    /// Whether the change is of the same entry of a list as the field that is drawn, where both are in that list.
    pub(super) fn is_near(&self, change: &Move) -> bool {
        let Some(field) = self.field() else { return true };
        let both = field.0.iter().zip(&change.path.0);
        let apart = both.take_while(|(own, other)| own == other || is_entry(own) && is_entry(other));
        !apart.into_iter().any(|(own, other)| own != other)
    }

    /// Whether the pattern is that of the field that is drawn, or of what it is in.
    pub(super) fn is_around(&self, pattern: &[String]) -> bool {
        self.field().is_some_and(|field| values::pattern(field).starts_with(pattern))
    }
}

const fn is_entry(step: &Step) -> bool {
    matches!(step, Step::Entry { .. })
}

/// The name of the state in which the expression fails.
const FAILED: &str = "error";

/// The sample of the schema, and given objects.
fn bases(judge: &Judge<'_>, given: &[&Value]) -> Vec<Value> {
    let sample = sample(judge);
    let mut objects: Vec<(usize, Value)> = Vec::new();
    for object in given.iter().take(MOST_ASKED) {
        let object = judge.stored(&with_identity(object, judge));
        if object != sample && !objects.iter().any(|(_, own)| *own == object) {
            objects.push((objections(judge, &object), object));
        }
    }
    // Those that a server takes come first: parts of them fit together.
    objects.sort_by_key(|(objections, _)| *objections);
    std::iter::once(sample).chain(objects.into_iter().map(|(_, object)| object)).take(MOST_GIVEN).collect()
}

/// What is objected to an object that gets its status at once.
fn objections(judge: &Judge<'_>, object: &Value) -> usize {
    let mut bare = object.clone();
    if let (true, Some(fields)) = (judge.status, bare.as_object_mut()) {
        fields.shift_remove("status");
    }
    let old = judge.status.then_some(&bare);
    judge.write(old, object, &UserInfo::default()).objections.len()
}

/// The states of a field that rules compare; empty where it has more values than can be drawn.
pub(super) fn is_drawable(states: &[State]) -> bool {
    states.len() > 1 && states.len() <= MOST_STATES && states.iter().any(|state| state.name != ABSENT)
}
