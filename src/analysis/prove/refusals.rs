//! Decides one step of an upgrade: models the request as both definitions see it, and each keyword and rule that may newly reject it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use admit_policy::crd::CompiledCrd;
use admit_policy::schema::Schema;

use super::changes::{Change, Judge};
use super::document::{NodeId, Origin, World};
use super::model::{self, Model, Sat};
use super::needed::Needed;
use super::pair::{Pair, has_defaults, stripped};
use super::placed::{Asked, Before, Objects};
use super::roots::{DEPTH, root};
use super::shrink::Request;
use super::subject::kind_of;
use super::term::{Sort, Term};
use super::whole::whole;
use super::written::{Step, Trial};
use super::{Counterexample, Solver, Undecided, undecided};

/// The result for one step; [`super::Upgrade`] has an example.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Keywords and rules of the new definition that reject what the old one accepts.
    pub breaks: Vec<Break>,
    /// Those that are undecided.
    pub undecided: Vec<Undecided>,
    /// If both lists are empty: the result covers objects whose lists and maps have at most this many items.
    pub up_to: Option<usize>,
}

/// A reason why a request is newly rejected; [`super::Upgrade`] has an example.
#[derive(Clone, Debug, PartialEq)]
pub struct Break {
    /// Path of the keyword or rule in the new definition.
    pub place: String,
    /// Path of the field in objects, without indices and keys.
    pub field: String,
    /// An example: a request, the existing object, and the verdicts of both definitions.
    pub found: Counterexample,
}

/// The schemas of one version, through which objects are read.
pub(super) struct Seen {
    typed: Schema,
    rules: Schema,
    place: String,
    has_status: bool,
}

impl Seen {
    pub(super) fn of(crd: &CompiledCrd, version: &str) -> Option<Self> {
        let definition = crd.definition();
        let at = definition.versions.iter().position(|known| known.name == version)?;
        let known = definition.versions.get(at)?;
        let rules = known.schema.as_deref().cloned().unwrap_or_default();
        let (kind, is_namespaced) = kind_of(definition, version);
        let typed = stripped(&whole(&rules, &kind, is_namespaced, false));
        let place = format!("spec.versions[{at}].schema.openAPIV3Schema");
        Some(Self { typed, rules, place, has_status: known.status_subresource })
    }
}

/// The maximum number of values to request from a solver at once: changes times variables.
pub(super) const MOST_VALUES: usize = 60_000;

/// A query about many changes.
pub(super) struct Many<'m> {
    pub(super) assumed: &'m [Term],
    pub(super) goals: &'m [Term],
    pub(super) texts: &'m Model,
}

/// What further queries need.
pub(super) struct Round<'r> {
    pub(super) many: &'r Many<'r>,
    pub(super) trial: &'r Trial<'r>,
    pub(super) over: &'r dyn Fn() -> bool,
}

/// The modelled request and the changes that may reject it.
pub(super) struct Question<'s> {
    pub(super) world: World<'s>,
    /// The request as reported: the object, and for a status update the stored object.
    pub(super) roots: (NodeId, Option<NodeId>),
    pub(super) changes: Vec<Change>,
    /// Constraints of the old definition that are not translated.
    left_out: BTreeSet<String>,
    /// For each change, when it is reported: rules do not run after some violations.
    pub(super) unblocked: Vec<Term>,
}

impl<'s> Question<'s> {
    pub(super) fn new(
        mut world: World<'s>,
        old: &'s Seen,
        new: &'s Seen,
        step: Step,
    ) -> Result<Self, Undecided> {
        // A status is what a client writes, too; where it has no defaults, stored objects keep theirs.
        world.tells_defaults = match step {
            Step::Create => true,
            Step::Update => false,
            Step::Status => old.typed.properties.get("status").is_some_and(has_defaults),
        };
        world.keeps_wrong_types = step != Step::Create;
        world.guesses.are_allowed = true;
        let stored = root(&mut world, &old.typed)?;
        let body = if step == Step::Status { Some(root(&mut world, &old.typed)?) } else { None };
        let Read { before, written_old, written } = read_by_both(&mut world, (old, new), stored, body)?;
        if step == Step::Create && old.has_status {
            world.forget(stored, "status")?;
        }
        if step == Step::Create && new.has_status {
            world.forget(written, "status")?;
        }
        // If the new version starts to drop the status on creation, unchanged constraints may fail without it, so all are judged.
        let known = (step != Step::Create || old.has_status || !new.has_status).then_some(old);
        let mut changes = judged(&mut world, written, known, new, step)?;
        if step == Step::Create && new.has_status {
            changes.extend(unread_status(&mut world, old, new));
        }
        let old_object = (step != Step::Create).then_some(before);
        let objects = Objects { new: written, old: old_object };
        let changed = (step == Step::Status).then_some("status");
        let before = known.map(|old| Before { schema: &old.rules, forgives: step != Step::Create, changed });
        let asked = Asked { schema: &new.rules, place: &new.place, objects, side: 1, before };
        add_rules(&mut world, &asked, &mut changes)?;
        let mut left_out = BTreeSet::new();
        if !changes.is_empty() {
            let alone = Objects { new: stored, old: None };
            assume_rules(&mut world, old, alone, false, &mut left_out);
            if step != Step::Create {
                let objects = Objects { new: written_old, old: Some(stored) };
                // What is stored satisfies the others already; a status that is written need not.
                let only_back = step == Step::Update;
                assume_rules(&mut world, old, objects, only_back, &mut left_out);
            }
            world.complete(stored, DEPTH)?;
            if let Some(body) = body {
                world.complete(body, DEPTH)?;
            }
        }
        let roots = match body {
            Some(body) => (body, Some(stored)),
            None => (stored, None),
        };
        Ok(Self { world, roots, changes, left_out, unblocked: Vec::new() })
    }

    pub(super) fn asked(
        &mut self,
        trial: &Trial<'_>,
        same_paths: bool,
        solver: &mut dyn Solver,
        over: &dyn Fn() -> bool,
    ) -> Report {
        let mut report = Report::default();
        if !same_paths {
            report
                .undecided
                .push(undecided("different paths of the scale subresource").of(1, "spec.versions"));
        }
        self.changes = merged(&mut self.world, std::mem::take(&mut self.changes));
        if self.changes.is_empty() {
            return report;
        }
        let mut goals: Vec<Term> = self.changes.iter().map(|change| change.refused).collect();
        self.unblocked = self.unblocked(trial.step);
        let count = goals.len();
        goals.extend(&self.unblocked);
        self.world.settle(&goals);
        goals.truncate(count);
        let Needed { assumed, texts } = self.world.needed(&goals);
        let roots: Vec<Term> = assumed.iter().chain(&goals).copied().collect();
        let values = self.world.terms.variables_of(&roots).len();
        let many = Many { assumed: &assumed, goals: &goals, texts: &texts };
        let round = Round { many: &many, trial, over };
        if values.saturating_mul(goals.len()) > MOST_VALUES {
            self.asked_of_many(&round, solver, &mut report);
        } else {
            self.asked_of_few(&round, &roots, solver, &mut report);
        }
        if report.up_to.is_some() {
            self.ask_beyond(&round, solver, &mut report);
        }
        report
    }

    /// Records that a change rejects nothing new.
    pub(super) fn holds(&self, change: &Change, is_vacuous: bool, report: &mut Report) {
        if is_vacuous {
            let what = format!("strings that split into more than {} parts", self.world.items);
            report.undecided.push(undecided(what).of(1, &change.place));
        } else if self.world.is_bounded {
            report.up_to = Some(self.world.items);
        }
    }

    /// Returns the first model whose object the engine confirms.
    pub(super) fn shown(
        &self,
        change: &Change,
        models: impl Iterator<Item = Model>,
        trial: &Trial<'_>,
        over: &dyn Fn() -> bool,
    ) -> Option<Break> {
        for model in models.flat_map(|model| self.world.respellings(&model)) {
            let request = self.request(&model);
            if let Some(found) = request.and_then(|request| trial.smallest(change, request, over)) {
                return Some(Break { place: change.place.clone(), field: change.field.clone(), found });
            }
        }
        None
    }

    /// Reports whether the query covered no object because some string always splits into more parts than modelled. Asks again if that
    /// was not answered.
    pub(super) fn is_vacuous(
        &self,
        answered: Option<&[Sat]>,
        many: &Many<'_>,
        solver: &mut dyn Solver,
    ) -> bool {
        let is_there = |answers: &[Sat]| {
            let there = answers.iter().filter(|answer| matches!(answer, Sat::Yes(_)));
            there.count() >= self.world.cut_texts.len()
        };
        if self.world.cut_texts.is_empty() || answered.is_some_and(is_there) {
            return false;
        }
        let mut script = self.preamble(many.assumed, &[]);
        self.ask_of_texts(&mut script);
        !answers(solver, &script, 4).is_ok_and(|answers| is_there(&answers))
    }

    /// Asks whether the strings whose number of parts is limited can be present.
    pub(super) fn ask_of_texts(&self, script: &mut String) {
        for there in &self.world.cut_texts {
            let _ = writeln!(
                script,
                "(push 1)\n(assert {})\n(check-sat)\n(pop 1)",
                self.world.terms.name(*there)
            );
        }
    }

    /// Explains why a change is undecided.
    pub(super) fn why(&self, change: &Change, answer: &[Sat]) -> Undecided {
        if !answer.iter().any(|answer| matches!(answer, Sat::Yes(_))) {
            return undecided("the solver gave up");
        }
        if let Some(why) = &change.guessed {
            return undecided(why.clone());
        }
        let made = self.world.guesses.made.iter().chain(&self.world.readings.notes);
        let guessed = made.map(|one| one.what.as_str());
        let left_out: BTreeSet<&str> =
            self.left_out.iter().chain(&self.world.relaxed).map(String::as_str).chain(guessed).collect();
        if left_out.is_empty() {
            return undecided("the engine does not confirm the solver's object");
        }
        let left_out: Vec<&str> = left_out.into_iter().collect();
        undecided(format!("unsupported constraints: {}", left_out.join(", ")))
    }

    pub(super) fn request(&self, model: &Model) -> Option<Request> {
        let object = self.world.object(self.roots.0, model).ok()?;
        let stored = match self.roots.1 {
            Some(stored) => Some(self.world.object(stored, model).ok()?),
            None => None,
        };
        Some((object, stored))
    }

    /// Writes all assumptions, and the definitions of the goals.
    pub(super) fn preamble(&self, assumed: &[Term], goals: &[Term]) -> String {
        let terms = &self.world.terms;
        let roots: Vec<Term> = assumed.iter().chain(goals).chain(&self.world.cut_texts).copied().collect();
        let mut script = String::from("(set-option :produce-models true)\n(set-logic ALL)\n");
        terms.write(&roots, &mut script);
        for assumed in assumed {
            let _ = writeln!(script, "(assert {})", terms.name(*assumed));
        }
        script
    }

    /// Asks for each change: is there an object that shows it, and is there one that nothing else rejects?
    pub(super) fn script(&self, assumed: &[Term], goals: &[Term], roots: &[Term]) -> String {
        let terms = &self.world.terms;
        let mut script = self.preamble(assumed, goals);
        let ask = terms.asked(roots);
        for goal in goals {
            let _ = write!(script, "(push 1)\n(assert {})\n{ask}", terms.name(*goal));
            for other in goals.iter().filter(|other| *other != goal) {
                let _ = writeln!(script, "(assert (not {}))", terms.name(*other));
            }
            let again = if goals.len() > 1 { &ask } else { "" };
            let _ = writeln!(script, "{again}(pop 1)");
        }
        self.ask_of_texts(&mut script);
        script
    }
}

/// Asks a solver with one of `parts` equal shares of the remaining time.
pub(super) fn answers(solver: &mut dyn Solver, script: &str, parts: usize) -> Result<Vec<Sat>, Undecided> {
    match solver.ask_in_part(script, parts) {
        Ok(text) => Ok(model::answers(script, &text)),
        Err(error) => Err(undecided(error.to_string())),
    }
}

/// The nodes of a request as the definitions read them.
struct Read {
    /// The stored object, as the new definition reads it.
    before: NodeId,
    /// The object that is written, as each reads it.
    written_old: NodeId,
    written: NodeId,
}

fn read_by_both<'s>(
    world: &mut World<'s>,
    (old, new): (&'s Seen, &'s Seen),
    stored: NodeId,
    body: Option<NodeId>,
) -> Result<Read, Undecided> {
    let yes = world.terms.bool(true);
    let read = |world: &mut World<'s>, of: NodeId| {
        let made = world.made(&new.typed, yes, vec![(yes, Origin::Node(of))].into(), false)?;
        if let Some(metadata) = world.property(made, "metadata")? {
            world.mark_metadata(metadata);
        }
        Ok::<NodeId, Undecided>(made)
    };
    let before = read(world, stored)?;
    let Some(body) = body else { return Ok(Read { before, written_old: stored, written: before }) };
    // For the old definition, a status update leaves everything but the status unchanged.
    let written_old = world.made(&old.typed, yes, vec![(yes, Origin::Node(stored))].into(), false)?;
    world.replaced.push((written_old, "status", body));
    let written = read(world, written_old)?;
    // The new definition reads what was written, without the defaults of the old one.
    world.replaced.push((written, "status", body));
    Ok(Read { before, written_old, written })
}

/// Objects are read before a creation drops their status, and embedded objects have to be readable.
fn unread_status(world: &mut World<'_>, old: &Seen, new: &Seen) -> Option<Change> {
    let pair = Pair { new: &new.typed, old: Some(&old.typed) };
    pair.property("status").filter(|status| status.embeds_anew())?;
    Some(Change {
        place: format!("{}.properties[status]", new.place),
        field: "status".to_owned(),
        rule: None,
        refused: world.terms.variable(Sort::Bool),
        guessed: Some("an embedded object in a status that is dropped".to_owned()),
    })
}

/// Collects the keywords that may newly reject something.
fn judged(
    world: &mut World<'_>,
    written: NodeId,
    old: Option<&Seen>,
    new: &Seen,
    step: Step,
) -> Result<Vec<Change>, Undecided> {
    let pair = Pair { new: &new.typed, old: old.map(|old| &old.typed) };
    let mut judge = Judge { world, changes: Vec::new(), forgives: step == Step::Update, in_map: false };
    if step != Step::Status {
        judge.whole(written, pair, &new.place)?;
        return Ok(judge.changes);
    }
    // A status update validates only the schema of the status.
    let (Some(pair), Some(node)) = (pair.property("status"), judge.world.property(written, "status")?) else {
        return Ok(Vec::new());
    };
    judge.part(node, pair, format!("{}.properties[status]", new.place), "status")?;
    Ok(judge.changes)
}

/// Adds the rules that may newly reject something.
fn add_rules(world: &mut World<'_>, asked: &Asked<'_>, changes: &mut Vec<Change>) -> Result<(), Undecided> {
    let (verdicts, open) = asked.verdicts(world);
    for verdict in verdicts {
        let refused = verdict.denied(world);
        if world.terms.known_bool(refused) == Some(false) {
            continue;
        }
        let place = verdict.place;
        let rule = Some(place.rule);
        changes.push(Change { place: place.document, field: place.object, rule, refused, guessed: None });
    }
    for (why, place) in open {
        // Without a place it is unknown when the rule runs.
        let Some((place, here)) = place else { return Err(why) };
        let unknown = world.terms.variable(Sort::Bool);
        let refused = world.terms.and(&[here, unknown]);
        let rule = Some(place.rule);
        let guessed = Some(why.what);
        changes.push(Change { place: place.document, field: place.object, rule, refused, guessed });
    }
    Ok(())
}

/// Assumes that the old rules accept the objects. A rule that cannot be translated is left out, which only adds objects.
fn assume_rules(
    world: &mut World<'_>,
    old: &Seen,
    objects: Objects,
    only_back: bool,
    left_out: &mut BTreeSet<String>,
) {
    let asked = Asked { schema: &old.rules, place: &old.place, objects, side: 0, before: None };
    let (verdicts, open) = asked.verdicts(world);
    for verdict in verdicts.iter().filter(|verdict| !only_back || verdict.place.looks_back) {
        let denied = verdict.denied(world);
        let admitted = world.terms.not(denied);
        world.assumed.push(admitted);
    }
    left_out.extend(open.into_iter().map(|(undecided, _)| undecided.what));
}

/// Merges changes at the same path: the items of a list share theirs.
fn merged(world: &mut World<'_>, changes: Vec<Change>) -> Vec<Change> {
    let mut found: Vec<Change> = Vec::new();
    let mut places: BTreeMap<(String, String), usize> = BTreeMap::new();
    for change in changes {
        let key = (change.place.clone(), change.field.clone());
        match places.get(&key).and_then(|at| found.get_mut(*at)) {
            Some(known) => {
                known.refused = world.terms.or(&[known.refused, change.refused]);
                known.guessed = known.guessed.take().or(change.guessed);
            }
            None => {
                places.insert(key, found.len());
                found.push(change);
            }
        }
    }
    found.retain(|change| world.terms.known_bool(change.refused) != Some(false));
    found
}
