//! What holds for all objects: the rules that look at nothing but a few fields with few values are asked about every
//! combination of these.
//!
//! Of a rule whose parts all have to hold, each part is a rule of its own: what it came to is read from the evaluation.
//!
//! A rule that looks at the field alone says of every object what it says of one that has the same value there. What such
//! rules refuse is refused whatever else an object has; what they let pass may still be refused by others. So a state that
//! cannot be reached by their leave cannot be reached at all, and a change that they refuse from each state that can be
//! reached is forbidden. Nothing is concluded where a value was left out.

use admit_policy::{Keep, Origin, Recording, UserInfo};
use serde_json::Value;

use super::field::{FieldPath, Step};
use super::judge::{Judge, Objection, Speaker, Trial};
use super::rules::{Rule, RulePlace};
use super::space::{self, Space, StateValue, at, depth_of, is_in_list, listed, plain_path};
use crate::reads::Reads;

/// Combinations of values in the old and in the new object: their pairs are all asked.
const MOST_VARIANTS: usize = 24;

/// What the rules say that look at few fields.
#[derive(Debug)]
pub(super) struct Exact {
    /// By state: whether an object may come into it.
    pub(super) reachable: Vec<bool>,
    /// By state: whether an object may be created in it.
    pub(super) creatable: Vec<bool>,
    /// By old and new state: whether a change may be let through.
    possible: Vec<Vec<bool>>,
    /// By old and new state: the rules that refuse, as indices.
    refusing: Vec<Vec<Vec<usize>>>,
    /// By state: the rules that refuse a creation.
    pub(super) refusing_creation: Vec<Vec<usize>>,
}

impl Exact {
    /// Whether some object that can be there may change so.
    pub(super) fn may(&self, old: usize, new: usize) -> bool {
        self.possible.get(old).and_then(|row| row.get(new)).copied().unwrap_or(true)
    }

    pub(super) fn refusing(&self, old: usize, new: usize) -> &[usize] {
        self.refusing.get(old).and_then(|row| row.get(new)).map(Vec::as_slice).unwrap_or_default()
    }
}

/// An object with one combination of values.
struct Variant {
    object: Value,
    state: usize,
    values: Vec<Option<Value>>,
    depth: usize,
}

/// The variant that is stored, and the rules that refuse; none where they let it through.
type Write = (usize, Option<Vec<usize>>);

struct Few<'a> {
    judge: &'a Judge<'a>,
    space: &'a Space<'a>,
    rules: &'a [Rule],
    /// The rules that look at these fields alone.
    own: Vec<usize>,
    /// The parts of other rules that do, with the rule.
    parts: Vec<(usize, &'a str)>,
    /// The field that is drawn, and others beside it.
    fields: Vec<FieldPath>,
    variants: Vec<Variant>,
    user: UserInfo,
}

/// Asks the rules that look at few fields; none where that leads to no conclusion, or the time is over.
pub(super) fn decide(
    judge: &Judge<'_>,
    space: &Space<'_>,
    rules: &[Rule],
    over: &dyn Fn() -> bool,
) -> Option<Exact> {
    if is_in_list(&space.subject) || judge.mutates() {
        return None;
    }
    let fields = fields(judge, space, rules);
    let (own, parts) = eligible(space, rules, &fields);
    if own.is_empty() && parts.is_empty() {
        return None;
    }
    let user = UserInfo::default();
    let mut few = Few { judge, space, rules, own, parts, fields, variants: Vec::new(), user };
    few.variants = few.all_variants()?;
    few.asked(over)
}

/// The rules that look at nothing else, as indices, and the parts of others that do.
fn eligible<'a>(
    space: &Space<'_>,
    rules: &'a [Rule],
    fields: &[FieldPath],
) -> (Vec<usize>, Vec<(usize, &'a str)>) {
    let patterns: Vec<Vec<String>> = fields.iter().map(space::pattern).collect();
    let is_open = space.states.iter().any(|state| matches!(state.value, StateValue::Other(_)));
    let is_eligible = |rule: &Rule, reads: &Reads| {
        let values = reads.values.iter().all(|place| patterns.contains(&place.path));
        let tests = reads.tests.iter().all(|place| patterns.iter().any(|own| own.starts_with(&place.path)));
        let node = match &rule.place {
            RulePlace::Node { path, .. } => patterns.iter().any(|own| own.starts_with(path)),
            RulePlace::Validation(_) => true,
        };
        let asks_beyond = rule.selects || reads.user || !reads.others.is_empty();
        let is_exact = !(asks_beyond || is_open && reads.computes);
        values && tests && node && is_exact
    };
    let (mut own, mut parts) = (Vec::new(), Vec::new());
    for (index, rule) in rules.iter().enumerate() {
        if is_eligible(rule, &rule.reads) {
            own.push(index);
            continue;
        }
        let eligible = rule.parts.iter().filter(|(_, reads)| is_eligible(rule, reads));
        parts.extend(eligible.map(|(text, _)| (index, text.as_str())));
    }
    (own, parts)
}

/// The field, and those beside it with few values that rules look at together with it.
fn fields(judge: &Judge<'_>, space: &Space<'_>, rules: &[Rule]) -> Vec<FieldPath> {
    let mut fields = vec![space.subject.clone()];
    let schema = judge.definition().map(|(_, version)| version.schema());
    let mut count = space.states.len();
    for rule in rules.iter().filter(|rule| rule.speaks_of(&space.pattern)) {
        for pattern in rule.reads.paths() {
            let Some(path) = plain_path(pattern).filter(|path| !fields.contains(path)) else { continue };
            let is_beside = path.0.split_last().map(|(_, parents)| parents)
                == space.subject.0.split_last().map(|(_, parents)| parents);
            let values = schema.and_then(|schema| at(schema, pattern)).map(listed).unwrap_or_default();
            let with_it = count.saturating_mul(values.len().saturating_add(1));
            if is_beside && !values.is_empty() && with_it < MOST_VARIANTS {
                count = with_it;
                fields.push(path);
            }
        }
    }
    fields
}

impl Few<'_> {
    /// An object for each combination of values, and for each part of the path that may be missing.
    fn all_variants(&self) -> Option<Vec<Variant>> {
        let base = self.space.bases.first()?;
        let mut objects = Vec::new();
        for (index, state) in self.space.states.iter().enumerate() {
            let mut object = base.clone();
            // The parent is there in all of these.
            self.space.put(&mut object, if index == 0 { 1 } else { index });
            self.space.put(&mut object, index);
            if let StateValue::Other(_) = state.value {
                let mut second = object.clone();
                self.space.put(&mut second, index);
                objects.push(second);
            }
            objects.push(object);
        }
        let schema = self.judge.definition().map(|(_, version)| version.schema());
        for field in self.fields.iter().skip(1) {
            let values = schema.and_then(|schema| at(schema, &space::pattern(field))).map(listed)?;
            let mut more = Vec::new();
            for object in &objects {
                for value in values.iter().map(Some).chain([None]) {
                    let mut object = object.clone();
                    match value {
                        Some(value) => self.space.set(&mut object, field, value.clone()),
                        None => field.remove(&mut object),
                    }
                    more.push(object);
                }
            }
            objects = more;
        }
        let steps = &self.space.subject.0;
        for depth in 1..steps.len() {
            let parent = FieldPath(steps.get(..depth).map(<[Step]>::to_vec)?);
            // Every object has metadata.
            if parent.0 == [Step::Name("metadata".to_owned())] {
                continue;
            }
            let mut object = base.clone();
            parent.remove(&mut object);
            objects.push(object);
        }
        objects.truncate(MOST_VARIANTS.saturating_add(steps.len()));
        objects.into_iter().map(|object| self.variant(object)).collect()
    }

    fn variant(&self, object: Value) -> Option<Variant> {
        let state = self.space.state_of(&object)?;
        let values = self.fields.iter().map(|field| field.get(&object).cloned()).collect();
        let depth = self.depth(&object);
        Some(Variant { object, state, values, depth })
    }

    /// How much of the path to the fields is there.
    fn depth(&self, object: &Value) -> usize {
        depth_of(&self.space.subject, object).min(self.space.subject.0.len().saturating_sub(1))
    }

    /// The variant that an object is of.
    fn index_of(&self, object: &Value) -> Option<usize> {
        let depth = self.depth(object);
        self.variants.iter().position(|variant| {
            let is_same = |(field, value): (&FieldPath, &Option<Value>)| field.get(object) == value.as_ref();
            variant.depth == depth && self.fields.iter().zip(&variant.values).all(is_same)
        })
    }

    /// What a write comes to, and the rules that refuse it; none where they let it through.
    fn write(&self, old: Option<&Variant>, new: &Variant) -> (Trial, Option<Vec<usize>>) {
        let before = old.map(|old| &old.object);
        if self.parts.is_empty() {
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
                let is_it = |(rule, own): &&(usize, &str)| *own == text && self.is_of(*rule, &id.origin);
                failed.extend(self.parts.iter().filter(is_it).map(|(rule, _)| *rule));
            }
        }
        let refusing = self.refusing(&trial.objections, &failed, old, new);
        (trial, refusing)
    }

    fn is_of(&self, rule: usize, origin: &Origin) -> bool {
        let (Origin::Policy { name } | Origin::Mutating { name } | Origin::Definition { name, .. }) = origin;
        self.rules.get(rule).is_some_and(|rule| rule.origin == *name)
    }

    /// `failed` are rules of which a part failed that looks at these fields alone.
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
                // Rules that say the same are told apart by none: each of them has to look at these fields alone.
                let looks = |rule: &usize| self.own.contains(rule) || failed.contains(rule);
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

    /// Rules of definitions that do not look at the old object are not run where nothing below them changes.
    fn counts(&self, rule: usize, old: Option<&Variant>, new: &Variant) -> bool {
        match self.rules.get(rule).map(|rule| &rule.place) {
            Some(RulePlace::Node { path, uses_old: false }) => old.is_none_or(|old| {
                self.changed(old, new).any(|field| space::pattern(field).starts_with(path))
            }),
            Some(_) => true,
            None => false,
        }
    }

    fn changed<'v>(&'v self, old: &'v Variant, new: &'v Variant) -> impl Iterator<Item = &'v FieldPath> {
        let both = old.values.iter().zip(&new.values);
        self.fields.iter().zip(both).filter(|(_, (old, new))| old != new).map(|(field, _)| field)
    }

    /// Whether the schema refuses the value of a field that changes.
    fn is_of_schema(&self, objection: &Objection, old: Option<&Variant>, new: &Variant) -> bool {
        const OF_VALUES: [&str; 2] = ["FieldValueRequired", "FieldValueNotSupported"];
        let Speaker::Server { field, reason } = &objection.by else { return false };
        let mut changed: Vec<&FieldPath> = match old {
            Some(old) => self.changed(old, new).collect(),
            None => self.fields.iter().collect(),
        };
        changed.retain(|path| space::pattern(path).join(".") == *field);
        OF_VALUES.contains(&reason.as_str()) && !changed.is_empty()
    }

    fn asked(&self, over: &dyn Fn() -> bool) -> Option<Exact> {
        let count = self.space.states.len();
        let mut exact = Exact {
            reachable: vec![false; count],
            creatable: vec![false; count],
            possible: vec![vec![false; count]; count],
            refusing: vec![vec![Vec::new(); count]; count],
            refusing_creation: vec![Vec::new(); count],
        };
        let mut open = Vec::new();
        for variant in &self.variants {
            let (trial, refusing) = self.write(None, variant);
            match refusing {
                None => {
                    let made = self.index_of(&trial.stored)?;
                    mark(&mut exact.creatable, self.variants.get(made)?.state);
                    open.push(made);
                }
                Some(rules) => {
                    exact.refusing_creation.get_mut(variant.state)?.extend(rules);
                }
            }
        }
        let next = self.every_step(over)?;
        let mut reached = vec![false; self.variants.len()];
        while let Some(at) = open.pop() {
            if reached.get(at) == Some(&true) {
                continue;
            }
            mark(&mut reached, at);
            open.extend(next.get(at)?.iter().filter_map(|(to, refused)| refused.is_none().then_some(*to)));
        }
        for (variant, _) in self.variants.iter().zip(&reached).filter(|(_, reached)| **reached) {
            mark(&mut exact.reachable, variant.state);
        }
        for (at, steps) in next.iter().enumerate() {
            let from = self.variants.get(at)?.state;
            // Where no object can be, one that was stored otherwise may be: all of them count.
            if reached.get(at) != Some(&true) && exact.reachable.get(from) == Some(&true) {
                continue;
            }
            for (to, refused) in steps {
                let to = self.variants.get(*to)?.state;
                match refused {
                    None => mark(exact.possible.get_mut(from)?, to),
                    Some(rules) => exact.refusing.get_mut(from)?.get_mut(to)?.extend(rules.iter().copied()),
                }
            }
        }
        exact.refusing.iter_mut().flatten().chain(&mut exact.refusing_creation).for_each(|rules| {
            rules.sort_unstable();
            rules.dedup();
        });
        Some(exact)
    }

    /// Of each variant, what a change to each other comes to: the variant that is stored, and who refuses.
    fn every_step(&self, over: &dyn Fn() -> bool) -> Option<Vec<Vec<Write>>> {
        let mut all = Vec::with_capacity(self.variants.len());
        for old in &self.variants {
            let mut steps = Vec::with_capacity(self.variants.len());
            for (at, new) in self.variants.iter().enumerate() {
                if over() {
                    return None;
                }
                let (trial, refused) = self.write(Some(old), new);
                let to = if refused.is_some() { at } else { self.index_of(&trial.stored)? };
                steps.push((to, refused));
            }
            all.push(steps);
        }
        Some(all)
    }
}

fn mark(marks: &mut [bool], at: usize) {
    if let Some(mark) = marks.get_mut(at) {
        *mark = true;
    }
}
