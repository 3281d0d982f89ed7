//! Decides what holds for all objects: evaluates the rules that read only a few fields, with few values, on every combination of those
//! values.
//!
//! Each conjunct of a rule counts as a rule of its own; its value is read from the recorded evaluation.
//!
//! A rule that reads only such fields gives the same verdict for all objects with equal values there. What it refuses is refused
//! whatever else an object contains; what it admits may be refused by others. So a state that these rules make unreachable is
//! unreachable, and a change that they refuse from every reachable combination is forbidden. Nothing is concluded if a value was left
//! out.

use admit_policy::{Keep, Origin, Recording, UserInfo};
use serde_json::Value;

use super::atoms::{self, Atom, AtomKind, Reading};
use super::eligible::{Eligible, eligible, is_decided};
use super::field::{FieldPath, Step};
use super::judge::{Judge, Objection, Speaker, Trial};
use super::looks;
use super::picture::Limit;
use super::rules::{Rule, RulePlace};
use super::space::{MOST_COMBINATIONS, Space};
use super::values::{at, listed, may_be_null, pattern, plain_path};

/// The maximum number of combinations up to which fields are added that rules read together with the drawn one.
const MOST_BESIDE: usize = 40;
/// The maximum number of combinations up to which changes from unreachable objects are tried, too.
const MOST_FROM_ALL: usize = 40;

/// The verdicts of the rules that read few fields.
#[derive(Debug)]
pub(super) struct Exact {
    /// By state: whether an object may reach it.
    pub(super) reachable: Vec<bool>,
    /// By state: whether an object may be created in it.
    pub(super) creatable: Vec<bool>,
    /// By old and new state: whether a change may be admitted.
    possible: Vec<Vec<bool>>,
    /// By old and new state: indices of the rules that refuse.
    refusing: Vec<Vec<Vec<usize>>>,
    /// By state: the rules that refuse a creation.
    pub(super) refusing_creation: Vec<Vec<usize>>,
    /// By old and new state: whether every object may make the change.
    always: Vec<Vec<bool>>,
}

impl Exact {
    /// Reports whether some reachable object may make the change.
    pub(super) fn may(&self, old: usize, new: usize) -> bool {
        self.possible.get(old).and_then(|row| row.get(new)).copied().unwrap_or(true)
    }

    /// Reports whether every reachable object may make the change.
    pub(super) fn is_always(&self, old: usize, new: usize) -> bool {
        self.always.get(old).and_then(|row| row.get(new)).copied().unwrap_or_default()
    }

    pub(super) fn refusing(&self, old: usize, new: usize) -> &[usize] {
        self.refusing.get(old).and_then(|row| row.get(new)).map(Vec::as_slice).unwrap_or_default()
    }
}

/// An object with one combination of values.
struct Variant {
    object: Value,
    state: usize,
    readings: Vec<Reading>,
}

/// The index of the stored variant, and the rules that refuse the write; `None` if they admit it.
type Write = (usize, Option<Vec<usize>>);

/// Collects the rules that refuse a change, over all ways to make it.
#[derive(Clone, Debug, Default)]
struct Told {
    any: Vec<usize>,
    /// The rules that refuse in every refused way so far.
    each: Option<Vec<usize>>,
}

impl Told {
    fn add(&mut self, rules: &[usize]) {
        if rules.is_empty() {
            return;
        }
        self.any.extend(rules);
        match &mut self.each {
            Some(each) => each.retain(|rule| rules.contains(rule)),
            None => self.each = Some(rules.to_vec()),
        }
    }

    /// Returns one rule that refuses every way, else all rules that refuse together.
    fn rules(self) -> Vec<usize> {
        let mut rules = self.each.filter(|each| !each.is_empty()).unwrap_or(self.any);
        rules.sort_unstable();
        rules.dedup();
        rules
    }
}

struct Few<'a> {
    judge: &'a Judge<'a>,
    space: &'a Space<'a>,
    rules: &'a [Rule],
    eligible: Eligible<'a>,
    atoms: &'a [Atom],
    variants: Vec<Variant>,
    user: UserInfo,
}

/// Evaluates the rules that read few fields; `None` if there is no such rule, or time is up.
///
/// # Errors
/// If nothing can be said about all objects; the limit says why.
pub(super) fn decide(
    judge: &Judge<'_>,
    space: &Space<'_>,
    rules: &[Rule],
    unique: &looks::Unique,
    over: &dyn Fn() -> bool,
) -> Result<Option<Exact>, Limit> {
    if judge.mutates() {
        return Err(Limit::Mutating);
    }
    let mut atoms = space.atoms.clone()?;
    let objects = combinations(space, &atoms, MOST_COMBINATIONS)
        .ok_or(Limit::Combinations { fields: atoms.len(), most: MOST_COMBINATIONS })?;
    let (more, objects) = beside(judge, space, rules, (&atoms, objects));
    atoms = more;
    let schema = judge.definition().map(|(_, version)| version.schema());
    let eligible = eligible(rules, &atoms, schema, unique);
    // The condition `only` selects equally among objects with equal atoms only if the atoms decide it.
    let is_known = space.only.as_ref().is_some_and(|only| is_decided(only, &atoms, schema, unique));
    if eligible.own.is_empty() && eligible.parts.is_empty() && !is_known {
        return Ok(None);
    }
    let variant = |object: Value| {
        let state = space.state_of(&object)?;
        let readings = atoms::readings(&atoms, &object)?;
        Some(Variant { object, state, readings })
    };
    let objects = objects.into_iter().filter(|object| !is_known || space.is_meant(object));
    let variants: Option<Vec<Variant>> = objects.map(variant).collect();
    let user = UserInfo::default();
    let Some(variants) = variants else { return Err(Limit::Reads) };
    let few = Few { judge, space, rules, eligible, atoms: &atoms, variants, user };
    Ok(few.asked(over))
}

fn combinations(space: &Space<'_>, atoms: &[Atom], most: usize) -> Option<Vec<Value>> {
    atoms::combinations(atoms, space.bases.first()?, most, &|steps| space.filled(steps))
}

/// Finds further fields with few values that rules read together with the drawn one, while combinations stay few.
fn beside(
    judge: &Judge<'_>,
    space: &Space<'_>,
    rules: &[Rule],
    (atoms, objects): (&[Atom], Vec<Value>),
) -> (Vec<Atom>, Vec<Value>) {
    let (mut atoms, mut objects) = (atoms.to_vec(), objects);
    let (Some(field), Some((_, version))) = (space.field(), judge.definition()) else {
        return (atoms, objects);
    };
    let parents = |path: &FieldPath| path.0.split_last().map(|(_, parents)| parents.to_vec());
    for rule in rules.iter().filter(|rule| rule.speaks_of(&space.patterns)) {
        for place in rule.reads.paths() {
            let is_beside = |path: &FieldPath| {
                parents(path) == parents(field) && !atoms.iter().any(|atom| atom.path == *path)
            };
            let Some(path) = plain_path(place).filter(is_beside) else { continue };
            let values = at(version.schema(), place).map(listed).unwrap_or_default();
            if values.is_empty() || may_be_null(Some(version.schema()), place) {
                continue;
            }
            let mut more = atoms.clone();
            more.push(Atom { path, kind: AtomKind::Values(values) });
            if let Some(found) = combinations(space, &more, MOST_BESIDE) {
                (atoms, objects) = (more, found);
            }
        }
    }
    (atoms, objects)
}

impl Few<'_> {
    /// Returns the variant that an object matches.
    fn index_of(&self, object: &Value) -> Option<usize> {
        let readings = atoms::readings(self.atoms, object)?;
        self.variants.iter().position(|variant| variant.readings == readings)
    }

    /// Evaluates a write; returns the rules that refuse it, `None` if they admit it.
    fn write(&self, old: Option<&Variant>, new: &Variant) -> (Trial, Option<Vec<usize>>) {
        let before = old.map(|old| &old.object);
        if self.eligible.parts.is_empty() {
            let trial = self.judge.write(before, &new.object, &self.user);
            let refusing = self.refusing(&trial.objections, &[], old, new);
            return (trial, refusing);
        }
        let recording = Recording::new(Keep::TRACES);
        let trial = self.judge.watched(before, &new.object, &self.user, Some(&recording));
        let mut failed: Vec<usize> = Vec::new();
        for (id, recorded) in recording.finish() {
            let parts = recorded.traces.iter().flat_map(|trace| &trace.parts);
            for part in parts.filter(|part| part.outcome.as_deref() == Ok("false")) {
                let text = part.span.of(&recorded.text);
                let is_it = |(rule, own): &&(usize, String)| *own == text && self.is_of(*rule, &id.origin);
                failed.extend(self.eligible.parts.iter().filter(is_it).map(|(rule, _)| *rule));
            }
        }
        let refusing = self.refusing(&trial.objections, &failed, old, new);
        (trial, refusing)
    }

    fn is_of(&self, rule: usize, origin: &Origin) -> bool {
        self.rules.get(rule).is_some_and(|rule| rule.origin == origin.name())
    }

    /// Returns the rules that refuse; `failed` are rules with a failed conjunct that reads only these fields.
    fn refusing(
        &self,
        objections: &[Objection],
        failed: &[usize],
        old: Option<&Variant>,
        new: &Variant,
    ) -> Option<Vec<usize>> {
        let mut refusing = Vec::new();
        let mut by_schema = false;
        for objection in objections {
            let saying: Vec<usize> = self.every_rule(objection);
            if !saying.is_empty() {
                // Rules with the same message at the same place are not distinguished, so each of them must read only these fields.
                let looks = |rule: &usize| self.eligible.own.contains(rule) || failed.contains(rule);
                if saying.iter().all(|rule| looks(rule) && self.counts(*rule, old, new)) {
                    refusing.extend(saying);
                }
            } else if self.is_of_schema(objection, old, new) {
                by_schema = true;
            }
        }
        refusing.sort_unstable();
        refusing.dedup();
        (by_schema || !refusing.is_empty()).then_some(refusing)
    }

    fn every_rule(&self, objection: &Objection) -> Vec<usize> {
        let rules = self.rules.iter().enumerate();
        rules.filter(|(_, rule)| rule.says(objection)).map(|(index, _)| index).collect()
    }

    /// Reports whether the rule runs: rules without `oldSelf` do not run where nothing below them changes.
    fn counts(&self, rule: usize, old: Option<&Variant>, new: &Variant) -> bool {
        match self.rules.get(rule).map(|rule| &rule.place) {
            Some(RulePlace::Node { path, uses_old: false }) => {
                old.is_none_or(|old| self.changed(old, new).any(|atom| pattern(&atom.path).starts_with(path)))
            }
            Some(_) => true,
            None => false,
        }
    }

    fn changed<'v>(&'v self, old: &'v Variant, new: &'v Variant) -> impl Iterator<Item = &'v Atom> {
        let both = old.readings.iter().zip(&new.readings);
        self.atoms.iter().zip(both).filter(|(_, (old, new))| old != new).map(|(atom, _)| atom)
    }

    /// Reports whether the schema refuses the value or absence of a field that changes.
    fn is_of_schema(&self, objection: &Objection, old: Option<&Variant>, new: &Variant) -> bool {
        let Speaker::Server { field, reason } = &objection.by else { return false };
        let mut changed: Vec<&Atom> = match old {
            Some(old) => self.changed(old, new).collect(),
            None => self.atoms.iter().collect(),
        };
        let place: Vec<String> = field.split('.').map(ToOwned::to_owned).collect();
        changed.retain(|atom| match reason.as_str() {
            "FieldValueRequired" => pattern(&atom.path).starts_with(&place),
            "FieldValueNotSupported" => pattern(&atom.path) == place,
            _ => false,
        });
        !changed.is_empty()
    }

    fn asked(&self, over: &dyn Fn() -> bool) -> Option<Exact> {
        let count = self.space.states.len();
        let mut exact = Exact {
            reachable: vec![false; count],
            creatable: vec![false; count],
            possible: vec![vec![false; count]; count],
            refusing: vec![vec![Vec::new(); count]; count],
            refusing_creation: vec![Vec::new(); count],
            always: vec![vec![false; count]; count],
        };
        let (mut open, mut created) = (Vec::new(), vec![Told::default(); count]);
        for variant in &self.variants {
            let (trial, refusing) = self.write(None, variant);
            match refusing {
                None if !self.is_meant(&trial.stored) => {}
                None => {
                    let made = self.index_of(&trial.stored)?;
                    mark(&mut exact.creatable, self.variants.get(made)?.state);
                    open.push(made);
                }
                Some(rules) => created.get_mut(variant.state)?.add(&rules),
            }
        }
        exact.refusing_creation = created.into_iter().map(Told::rules).collect();
        let mut steps: Vec<Option<Vec<Write>>> = vec![None; self.variants.len()];
        let mut reached = vec![false; self.variants.len()];
        while let Some(at) = open.pop() {
            if reached.get(at) == Some(&true) {
                continue;
            }
            mark(&mut reached, at);
            let next = self.steps(at, over)?;
            open.extend(next.iter().filter_map(|(to, refused)| refused.is_none().then_some(*to)));
            open.extend(self.written_elsewhere(at));
            *steps.get_mut(at)? = Some(next);
        }
        for (variant, _) in self.variants.iter().zip(&reached).filter(|(_, reached)| **reached) {
            mark(&mut exact.reachable, variant.state);
        }
        if self.variants.len() <= MOST_FROM_ALL {
            for (at, step) in steps.iter_mut().enumerate().filter(|(_, step)| step.is_none()) {
                *step = Some(self.steps(at, over)?);
            }
        }
        self.sum_up(&mut exact, &steps, &reached)?;
        Some(exact)
    }

    /// Combines the results of all variants' changes by state.
    fn sum_up(&self, exact: &mut Exact, steps: &[Option<Vec<Write>>], reached: &[bool]) -> Option<()> {
        let count = self.space.states.len();
        let mut told = vec![vec![Told::default(); count]; count];
        for (at, steps) in steps.iter().enumerate() {
            let from = self.variants.get(at)?.state;
            // An unreachable object may have been stored under other rules, so all such objects count.
            if reached.get(at) != Some(&true) && exact.reachable.get(from) == Some(&true) {
                continue;
            }
            let Some(steps) = steps else {
                exact.possible.get_mut(from)?.fill(true);
                continue;
            };
            for (to, refused) in steps {
                let to = self.variants.get(*to)?.state;
                match refused {
                    None => mark(exact.possible.get_mut(from)?, to),
                    Some(rules) => told.get_mut(from)?.get_mut(to)?.add(rules),
                }
            }
        }
        exact.refusing = told.into_iter().map(|row| row.into_iter().map(Told::rules).collect()).collect();
        if self.eligible.is_complete(self.judge.status, &self.space.patterns) {
            self.sum_up_always(exact, steps, reached)?;
        }
        Some(())
    }

    /// A change is always allowed if each reachable object has a way that nothing refuses.
    fn sum_up_always(&self, exact: &mut Exact, steps: &[Option<Vec<Write>>], reached: &[bool]) -> Option<()> {
        let count = self.space.states.len();
        for (from, row) in exact.always.iter_mut().enumerate() {
            let of_state = |at: usize| {
                reached.get(at) == Some(&true)
                    && self.variants.get(at).is_some_and(|variant| variant.state == from)
            };
            let own: Vec<&Vec<Write>> = steps
                .iter()
                .enumerate()
                .filter(|(at, _)| of_state(*at))
                .filter_map(|(_, steps)| steps.as_ref())
                .collect();
            for (to, always) in row.iter_mut().enumerate().take(count) {
                let leads = |(at, refused): &Write| {
                    refused.is_none() && self.variants.get(*at).is_some_and(|variant| variant.state == to)
                };
                *always = from != to && !own.is_empty() && own.iter().all(|steps| steps.iter().any(leads));
            }
        }
        Some(())
    }

    fn is_meant(&self, object: &Value) -> bool {
        self.index_of(object).is_some() || self.space.is_meant(object)
    }

    /// Returns the variants that differ only in fields that another request (status or not) writes.
    fn written_elsewhere(&self, at: usize) -> Vec<usize> {
        let Some(own) = self.variants.get(at).filter(|_| self.judge.is_split) else { return Vec::new() };
        let status = Step::Name("status".to_owned());
        let is_elsewhere = |atom: &Atom| (atom.path.0.first() == Some(&status)) != self.judge.status;
        let differs_elsewhere = |variant: &Variant| {
            let both = own.readings.iter().zip(&variant.readings);
            self.atoms.iter().zip(both).all(|(atom, (own, other))| own == other || is_elsewhere(atom))
        };
        let all = self.variants.iter().enumerate();
        all.filter(|(_, variant)| differs_elsewhere(variant)).map(|(at, _)| at).collect()
    }

    /// Evaluates the change of a variant to each other one: the stored variant, and the rules that refuse.
    fn steps(&self, at: usize, over: &dyn Fn() -> bool) -> Option<Vec<Write>> {
        let old = self.variants.get(at)?;
        let mut steps = Vec::with_capacity(self.variants.len());
        for (at, new) in self.variants.iter().enumerate() {
            if over() {
                return None;
            }
            let (trial, refused) = self.write(Some(old), new);
            match refused {
                Some(_) => steps.push((at, refused)),
                None if !self.is_meant(&trial.stored) => {}
                None => steps.push((self.index_of(&trial.stored)?, None)),
            }
        }
        Some(steps)
    }
}

fn mark(marks: &mut [bool], at: usize) {
    if let Some(mark) = marks.get_mut(at) {
        *mark = true;
    }
}
