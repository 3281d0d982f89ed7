//! Finds admitted transitions by writing objects: first creations, then updates of the results, until nothing new is found.
//!
//! ```text
//! bases ──create──► reached objects, by state ──change the field, then what is objected to──► reached objects …
//! ```
//!
//! A refused write is repaired: among changes of the fields that the refusing rules read, the one that leaves the fewest objections is
//! made, and so on. What is found is admitted; what is not found may still exist.

use std::collections::VecDeque;

use admit_policy::UserInfo;
use serde_json::Value;

use super::exact::Exact;
use super::judge::{Judge, Objection, Speaker, Trial};
use super::moves::Move;
use super::rules::Rule;
use super::space::Space;

/// The number of objects kept per state to try changes from; it covers the distinctions that rules of the systems examined make.
const KEPT: usize = 8;
/// The maximum number of successive field changes per transition.
const MENDINGS: usize = 8;
/// With more candidate changes than this, pairs of them are not tried.
const MOST_PAIRED: usize = 24;
/// The maximum number of further changes to try in order to see what a transition depends on.
const MOST_ASKED: usize = 120;
/// The maximum number of writes per pair of states.
const MOST_TRIED: usize = 3_000;

/// What is known of one transition.
#[derive(Clone, Debug, Default)]
pub(super) struct Edge {
    /// An example: the old object, the new one, and the index of the user.
    pub(super) found: Option<Found>,
    /// An example from an object that these rules would not have admitted.
    pub(super) otherwise: Option<Found>,
    /// The number of writes that were tried.
    pub(super) tried: usize,
    /// The smallest set of objections met.
    pub(super) nearest: Option<Vec<Objection>>,
}

#[derive(Clone, Debug)]
pub(super) struct Found {
    /// None for a creation.
    pub(super) old: Option<Value>,
    pub(super) new: Value,
    pub(super) user: usize,
}

/// The result of the search.
#[derive(Debug)]
pub(super) struct Explored {
    /// By old and new state.
    pub(super) edges: Vec<Vec<Edge>>,
    /// By state: its creation.
    pub(super) creations: Vec<Edge>,
    /// The number of all writes.
    pub(super) reached: Vec<bool>,
    /// Writes in all.
    pub(super) tried: usize,
    /// Whether time ran out before everything was tried.
    pub(super) interrupted: bool,
}

pub(super) struct Search<'a> {
    pub(super) judge: &'a Judge<'a>,
    pub(super) space: &'a Space<'a>,
    pub(super) rules: &'a [Rule],
    /// The users to try; the first has no special rights.
    pub(super) users: &'a [UserInfo],
    pub(super) exact: Option<&'a Exact>,
    pub(super) over: &'a dyn Fn() -> bool,
}

struct State {
    kept: Vec<Vec<Value>>,
    open: VecDeque<(usize, Value)>,
    explored: Explored,
}

struct Sought {
    admitted: Option<(Value, Value)>,
    tried: usize,
    nearest: Vec<Objection>,
}

impl State {
    fn keep(&mut self, at: usize, object: Value) {
        if let Some(reached) = self.explored.reached.get_mut(at) {
            *reached = true;
        }
        let Some(kept) = self.kept.get_mut(at) else { return };
        if kept.len() < KEPT && !kept.contains(&object) {
            kept.push(object.clone());
            self.open.push_back((at, object));
        }
    }
}

impl Search<'_> {
    pub(super) fn run(&self) -> Explored {
        let count = self.space.states.len();
        let explored = Explored {
            edges: vec![vec![Edge::default(); count]; count],
            creations: vec![Edge::default(); count],
            reached: vec![false; count],
            tried: 0,
            interrupted: false,
        };
        let mut state = State { kept: vec![Vec::new(); count], open: VecDeque::new(), explored };
        self.create(&mut state);
        while let Some((from, object)) = state.open.pop_front() {
            if (self.over)() {
                state.explored.interrupted = true;
                break;
            }
            self.vary(&mut state, from, &object);
            for to in (0..count).filter(|to| *to != from) {
                self.step(&mut state, (from, to), &object, true);
            }
        }
        self.try_others(&mut state);
        state.explored
    }

    /// Tries creations in every state, from every base.
    fn create(&self, state: &mut State) {
        for to in 0..self.space.states.len() {
            for base in &self.space.bases {
                if (self.over)() {
                    state.explored.interrupted = true;
                    return;
                }
                let is_open = state.explored.creations.get(to).is_some_and(|edge| edge.tried < MOST_TRIED);
                if !is_open || self.exact.is_some_and(|exact| exact.creatable.get(to) == Some(&false)) {
                    continue;
                }
                for start in self.space.placed(base, to) {
                    self.attempt(state, None, to, (None, &start), true);
                }
            }
        }
    }

    /// Tries one transition from an object.
    fn step(&self, state: &mut State, (from, to): (usize, usize), object: &Value, is_reached: bool) {
        let edge = state.explored.edges.get(from).and_then(|row| row.get(to));
        let is_known = edge.is_none_or(|edge| edge.found.is_some() || edge.tried >= MOST_TRIED);
        if is_known || self.exact.is_some_and(|exact| !exact.may(from, to)) || (self.over)() {
            return;
        }
        for start in self.like_given(object, to).into_iter().chain(self.space.placed(object, to)) {
            self.attempt(state, Some(from), to, (Some(object), &start), is_reached);
            let edge = state.explored.edges.get(from).and_then(|row| row.get(to));
            if edge.is_none_or(|edge| edge.found.is_some()) {
                return;
            }
        }
    }

    /// Copies parts of a given object, if that is admitted without repairs.
    fn like_given(&self, object: &Value, to: usize) -> Option<Value> {
        let user = self.users.first()?;
        self.space
            .like_given(object, to)
            .find(|new| self.is_there(&self.judge.write(Some(object), new, user), to))
    }

    fn attempt(
        &self,
        state: &mut State,
        from: Option<usize>,
        to: usize,
        (old, start): (Option<&Value>, &Value),
        is_reached: bool,
    ) {
        let whoever_may =
            self.users.iter().position(|user| self.is_there(&self.judge.write(old, start, user), to));
        let users = self.users.iter().enumerate();
        for (user, info) in users.skip(whoever_may.unwrap_or_default()) {
            let sought = self.seek(old, start, to, info);
            let asks_for_user = sought.nearest.iter().any(|objection| self.asks_for_user(objection));
            state.explored.tried = state.explored.tried.saturating_add(sought.tried);
            let edge = match from {
                Some(from) => state.explored.edges.get_mut(from).and_then(|row| row.get_mut(to)),
                None => state.explored.creations.get_mut(to),
            };
            let Some(edge) = edge else { return };
            edge.tried = edge.tried.saturating_add(sought.tried);
            let Some((new, stored)) = sought.admitted else {
                if edge.nearest.as_ref().is_none_or(|nearest| sought.nearest.len() < nearest.len()) {
                    edge.nearest = Some(sought.nearest);
                }
                // Another user matters only if a rule reads the user.
                if asks_for_user { continue } else { return }
            };
            let found = Found { old: old.cloned(), new, user };
            if is_reached {
                if edge.found.is_none() {
                    edge.found = Some(found);
                }
                state.keep(to, stored);
            } else {
                edge.otherwise.get_or_insert(found);
            }
            return;
        }
    }

    /// Looks for other objects of the same state, and whether the state may be kept; finally by an update that changes nothing.
    fn vary(&self, state: &mut State, at: usize, object: &Value) {
        let changed = self.usable().filter_map(|change| {
            let mut new = object.clone();
            self.space.change(&mut new, change, at);
            (new != *object).then_some(new)
        });
        for new in changed.chain([object.clone()]) {
            let is_full = state.kept.get(at).is_none_or(|kept| kept.len() >= KEPT);
            let edge = state.explored.edges.get_mut(at).and_then(|row| row.get_mut(at));
            let (Some(edge), Some(user)) = (edge, self.users.first()) else { return };
            if is_full && edge.found.is_some() || edge.tried >= MOST_TRIED || (self.over)() {
                return;
            }
            let trial = self.judge.write(Some(object), &new, user);
            state.explored.tried = state.explored.tried.saturating_add(1);
            edge.tried = edge.tried.saturating_add(1);
            if self.is_there(&trial, at) {
                edge.found.get_or_insert_with(|| Found { old: Some(object.clone()), new, user: 0 });
                state.keep(at, trial.stored);
            } else if edge.nearest.as_ref().is_none_or(|nearest| trial.objections.len() < nearest.len()) {
                edge.nearest = Some(trial.objections);
            }
        }
    }

    /// Tries the missing transitions from objects stored before these rules existed.
    fn try_others(&self, state: &mut State) {
        for from in 0..self.space.states.len() {
            let objects: Vec<Value> =
                self.space.bases.iter().filter_map(|base| self.placed(base, from)).take(KEPT).collect();
            for to in (0..self.space.states.len()).filter(|to| *to != from) {
                for object in &objects {
                    if (self.over)() {
                        state.explored.interrupted = true;
                        return;
                    }
                    let edge = state.explored.edges.get(from).and_then(|row| row.get(to));
                    if edge.is_some_and(|edge| edge.otherwise.is_none()) {
                        self.step(state, (from, to), object, false);
                    }
                }
            }
        }
    }

    fn placed(&self, base: &Value, state: usize) -> Option<Value> {
        let object = self.space.placed(base, state).into_iter().next()?;
        let stored = self.judge.stored(&object);
        self.space.is_meant(&stored).then_some(stored)
    }

    /// Repairs `start` until it is admitted in state `to`, or no change helps.
    fn seek(&self, old: Option<&Value>, start: &Value, to: usize, user: &UserInfo) -> Sought {
        let mut tried: usize = 0;
        let mut write = |new: &Value| {
            tried = tried.saturating_add(1);
            self.judge.write(old, new, user)
        };
        let (mut new, mut trial) = (start.clone(), write(start));
        for _ in 0..MENDINGS {
            if self.is_there(&trial, to) || (self.over)() {
                break;
            }
            let helpful = self.helpful(&trial.objections, old.is_none());
            let mut best: Option<(Value, Trial)> = None;
            let singles = helpful.iter().map(|change| vec![*change]);
            // Fields that were set together are not combined with other changes.
            let fields: Vec<&Move> =
                helpful.iter().copied().filter(|change| change.pattern.len() > 1).collect();
            let is_few = fields.len() <= MOST_PAIRED;
            let pairs = fields.iter().enumerate().filter(|_| is_few).flat_map(|(at, one)| {
                fields.iter().skip(at.saturating_add(1)).map(move |other| vec![*one, *other])
            });
            for changes in singles.chain(pairs) {
                // Pairs are tried only if no single change helps.
                if changes.len() > 1 && best.is_some() {
                    break;
                }
                let mut next = new.clone();
                changes.iter().for_each(|change| self.space.change(&mut next, change, to));
                let result = write(&next);
                let least =
                    best.as_ref().map_or_else(|| self.weight(&trial, to), |(_, best)| self.weight(best, to));
                if self.weight(&result, to) < least {
                    best = Some((next, result));
                }
                if best.as_ref().is_some_and(|(_, best)| self.is_there(best, to)) || (self.over)() {
                    break;
                }
            }
            match best {
                Some((next, result)) => (new, trial) = (next, result),
                None => break,
            }
        }
        let admitted = self.is_there(&trial, to).then(|| (new, trial.stored.clone()));
        Sought { admitted, tried, nearest: trial.objections }
    }

    fn is_there(&self, trial: &Trial, to: usize) -> bool {
        trial.objections.is_empty()
            && self.space.state_of(&trial.stored) == Some(to)
            && self.space.is_meant(&trial.stored)
    }

    /// Measures how far the write is from being admitted in the state.
    fn weight(&self, trial: &Trial, to: usize) -> usize {
        let is_near = self.space.state_of(&trial.stored) == Some(to);
        let astray = if is_near && self.space.is_meant(&trial.stored) { 0 } else { 1_000 };
        trial.objections.len().saturating_add(astray)
    }

    /// Returns the changes that an update can make.
    pub(super) fn usable(&self) -> impl Iterator<Item = &Move> {
        let is_usable = |change: &&Move| {
            let is_of_status = change.pattern.first().is_some_and(|first| first == "status");
            !self.judge.is_split || is_of_status == self.judge.status
        };
        self.space.moves.iter().filter(is_usable)
    }

    /// Returns the changes of fields that the refusing rules read.
    fn helpful(&self, objections: &[Objection], is_creation: bool) -> Vec<&Move> {
        let mut patterns: Vec<&[String]> = Vec::new();
        let mut fields: Vec<Vec<String>> = Vec::new();
        for objection in objections {
            let speaking: Vec<&Rule> = self.rules.iter().filter(|rule| rule.says(objection)).collect();
            patterns.extend(speaking.iter().flat_map(|rule| rule.reads.paths()).map(Vec::as_slice));
            if let (Speaker::Server { field, .. }, true) = (&objection.by, speaking.is_empty()) {
                fields.push(field.split('.').map(ToOwned::to_owned).collect());
            }
        }
        patterns.extend(fields.iter().map(Vec::as_slice));
        let is_near = |change: &&Move| {
            let own = change.pattern.as_slice();
            patterns.iter().any(|pattern| own.starts_with(pattern) || pattern.starts_with(own))
        };
        let all: Vec<&Move> =
            if is_creation { self.space.moves.iter().collect() } else { self.usable().collect() };
        all.into_iter().filter(is_near).collect()
    }

    fn asks_for_user(&self, objection: &Objection) -> bool {
        self.rules.iter().any(|rule| rule.reads.user && rule.says(objection))
    }

    /// Finds the rules about the field that refuse the transition if another field differs; returns indices.
    pub(super) fn conditions(&self, found: &Found, to: usize) -> Vec<usize> {
        let Some(user) = self.users.get(found.user) else { return Vec::new() };
        let mut refusing: Vec<usize> = Vec::new();
        let mut note = |trial: &Trial| {
            for (index, rule) in self.rules.iter().enumerate() {
                let refuses = || trial.objections.iter().any(|objection| rule.says(objection));
                if rule.speaks_of(&self.space.patterns) && !refusing.contains(&index) && refuses() {
                    refusing.push(index);
                }
            }
        };
        if let Some(old) = &found.old {
            let mut alone = old.clone();
            self.space.put(&mut alone, to);
            note(&self.judge.write(Some(old), &alone, user));
        }
        let speaking: Vec<&Rule> =
            self.rules.iter().filter(|rule| rule.speaks_of(&self.space.patterns)).collect();
        let is_read = |change: &&Move| {
            let mut paths = speaking.iter().flat_map(|rule| rule.reads.paths());
            paths.any(|path| *path == change.pattern) && !self.space.is_around(&change.pattern)
        };
        for change in
            self.usable().filter(is_read).filter(|change| self.space.is_near(change)).take(MOST_ASKED)
        {
            if (self.over)() {
                break;
            }
            let mut new = found.new.clone();
            self.space.change(&mut new, change, to);
            note(&self.judge.write(found.old.as_ref(), &new, user));
        }
        refusing.sort_unstable();
        refusing
    }
}
