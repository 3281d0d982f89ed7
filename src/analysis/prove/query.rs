//! Decides claims: builds the query of a claim, asks a solver and interprets its answer.

use std::sync::Arc;

use serde_json::Value as Json;

use super::builtin::Sureness;
use super::document::{NodeId, World};
use super::model::{self, Model, Sat};
use super::placed::Objects;
use super::question::Question;
use super::roots::{DEPTH, has_alternatives, kept, root};
use super::rules;
use super::script::{script, variants};
use super::shrink::shrunk;
use super::side::{Rules, Side};
use super::subject::{Subject, Taken};
use super::term::Term;
use super::upgrade::Upgrade;
use super::view::View;
use super::written::Step;
use super::{Counterexample, Said, Solver, SolverError, Unconfirmed, Undecided, Verdict, undecided};

/// A claim with the rules and the kind that it is about.
#[derive(Debug)]
pub struct Inquiry<'a> {
    /// The claim.
    pub question: Question,
    /// The kind of the objects.
    pub subject: &'a Subject,
    /// The rules that the claim is about.
    pub left: &'a Side,
    /// The rules that they are compared with.
    pub right: Option<&'a Side>,
    /// An expression assumed to hold for the objects.
    pub that: Option<&'a str>,
    /// The number of modelled items per list or map, unless the schema declares fewer.
    pub items: usize,
}

/// The query for one operation.
#[derive(Debug)]
pub(super) struct Prepared<'s> {
    pub(super) world: World<'s>,
    pub(super) objects: Objects,
    pub(super) broken: Term,
}

/// An operation for which a claim holds for a few items.
#[derive(Clone, Copy, Debug)]
pub(super) struct Few {
    pub(super) update: bool,
    /// The number of items that were modelled.
    pub(super) items: usize,
    /// The number of items with which to ask again.
    pub(super) wider: Option<usize>,
}

impl Prepared<'_> {
    /// Returns the verdict that the claim holds, as far as it was asked.
    pub(super) fn holds(&self) -> Verdict {
        Verdict::Holds { up_to: self.world.is_bounded.then_some(self.world.items) }
    }
}

impl<'a> Inquiry<'a> {
    /// Decides the claim; without a solver, searches for counterexamples.
    ///
    /// # Errors
    /// When the engine does not confirm the solver's counterexample.
    pub fn decide(
        &self,
        solver: Option<&mut (dyn Solver + '_)>,
        over: &dyn Fn() -> bool,
    ) -> Result<Verdict, Unconfirmed> {
        if let Some((at, side)) = self.other_schema() {
            let mut differs = undecided("schemas that differ in more than their rules");
            differs.side = at;
            let decided = match (self.that, solver) {
                (None, Some(solver)) => self.across(side, solver, over),
                _ => None,
            };
            return Ok(decided.unwrap_or_else(|| Verdict::Undecided(vec![differs])));
        }
        if let Some(right) = self.right
            && requests_of(self.left) != requests_of(right)
        {
            return Ok(Verdict::Undecided(vec![undecided(
                "comparison of policies that match different operations",
            )]));
        }
        let that = match self.that.map(|that| Side::assumption(that, self.left, self.subject)).transpose() {
            Ok(that) => that,
            Err(error) => return Ok(Verdict::Undecided(vec![undecided(error.message).of(0, "--that")])),
        };
        let mut solver = solver;
        // Requests that a policy matches and that are not modelled leave the claim open.
        let sides = std::iter::once(self.left).chain(self.right).enumerate();
        let (mut few, mut open) =
            (Vec::new(), sides.filter_map(|(at, side)| side.not_followed(at)).collect::<Vec<_>>());
        for update in self.operations(that.as_ref()) {
            let (verdict, wider) = self.of_operation(update, that.as_ref(), solver.as_deref_mut(), over)?;
            match verdict {
                Verdict::Holds { up_to } => few.extend(up_to.map(|items| Few { update, items, wider })),
                Verdict::Refuted(_) => return Ok(verdict),
                Verdict::Undecided(undecided) => open.extend(undecided),
            }
        }
        // Creations and updates share most reasons, which are listed once.
        let mut told: Vec<Undecided> = Vec::new();
        for undecided in open {
            if !told.contains(&undecided) {
                told.push(undecided);
            }
        }
        Ok(match solver {
            _ if !told.is_empty() => Verdict::Undecided(told),
            Some(solver) if !few.is_empty() => self.widely(&few, that.as_ref(), solver, over),
            _ => Verdict::Holds { up_to: few.first().map(|few| few.items) },
        })
    }

    /// Decides the claim for creations or for updates; also returns the number of items with which to ask again.
    fn of_operation(
        &self,
        update: bool,
        that: Option<&Side>,
        mut solver: Option<&mut (dyn Solver + '_)>,
        over: &dyn Fn() -> bool,
    ) -> Result<(Verdict, Option<usize>), Unconfirmed> {
        // Where a server validates more than the schema, the first search is among objects that are likely valid: finding none there
        // proves nothing.
        if self.subject.likely.is_some()
            && let Ok(mut prepared) = self.prepare(self.world(), Sureness::Likely, update, that)
        {
            let found = self.ask(&mut prepared, that, solver.as_deref_mut(), over)?;
            if let Verdict::Refuted(_) = found {
                return Ok((found, None));
            }
        }
        let mut prepared = match self.prepare(self.world(), Sureness::Certain, update, that) {
            Ok(prepared) => prepared,
            Err(undecided) => return Ok((Verdict::Undecided(undecided), None)),
        };
        let verdict = self.ask(&mut prepared, that, solver, over)?;
        let wider = prepared.wider(&verdict);
        Ok((verdict, wider))
    }

    /// Returns a definition whose schema differs from the subject's.
    fn other_schema(&self) -> Option<(usize, &'a Side)> {
        let mut compared = std::iter::once(self.left).chain(self.right).enumerate();
        compared.find(|(_, side)| match &side.rules {
            Rules::Definition(rules) => !self.subject.has_schema(&rules.schema),
            Rules::Policy(_) => false,
        })
    }

    /// Compares definitions with different schemas, for creations only. `None` if rules read the old object.
    fn across(&self, right: &Side, solver: &mut dyn Solver, over: &dyn Fn() -> bool) -> Option<Verdict> {
        let (Rules::Definition(left), Rules::Definition(right)) = (&self.left.rules, &right.rules) else {
            return None;
        };
        let looks_back = rules::looks_back(&self.left.rules)
            || self.right.is_none_or(|right| rules::looks_back(&right.rules));
        if looks_back || !self.question.compares() {
            return None;
        }
        let (left, right) = (left.crd.as_ref()?, right.crd.as_ref()?);
        let mut directions = vec![(left, right, false)];
        directions.extend((self.question == Question::Equivalent).then_some((right, left, true)));
        let (mut bound, mut open) = (None, Vec::new());
        for (old, new, is_back) in directions {
            let upgrade = Upgrade::of(Arc::clone(old), Arc::clone(new));
            let report = upgrade.decide(&self.subject.version, Step::Create, self.items, solver, over);
            if let Some(found) = report.breaks.into_iter().next() {
                let mut found = found.found;
                if is_back {
                    found.said.reverse();
                }
                return Some(Verdict::Refuted(Box::new(found)));
            }
            bound = bound.or(report.up_to);
            open.extend(report.undecided.into_iter().map(|mut one| {
                one.side = if is_back { usize::from(one.side == 0) } else { one.side };
                one
            }));
        }
        Some(if open.is_empty() { Verdict::Holds { up_to: bound } } else { Verdict::Undecided(open) })
    }

    /// Lists the operations to decide: creations, updates or both.
    fn operations(&self, that: Option<&Side>) -> Vec<bool> {
        let sides: Vec<&Side> = std::iter::once(self.left).chain(self.right).collect();
        // For policies, the match constraints determine the requests; an assumption does not.
        let that = that.filter(|that| matches!(that.rules, Rules::Definition(_)));
        let looks_back = sides.iter().copied().chain(that).any(|side| rules::looks_back(&side.rules));
        let creates = |side: &&Side| match &side.rules {
            Rules::Definition(_) => true,
            Rules::Policy(rules) => rules.matched.creates,
        };
        let mut operations = Vec::new();
        operations.extend(sides.iter().any(creates).then_some(false));
        operations.extend(looks_back.then_some(true));
        operations
    }

    pub(super) fn view(&self) -> View {
        rules::view(&self.left.rules)
    }

    pub(super) fn world(&self) -> World<'a> {
        World::new(self.items, self.view())
    }

    pub(super) fn prepare(
        &self,
        mut world: World<'a>,
        sureness: Sureness,
        update: bool,
        that: Option<&Side>,
    ) -> Result<Prepared<'a>, Vec<Undecided>> {
        let schema = match (self.view(), sureness, &self.subject.likely) {
            (View::Typed, ..) => &self.subject.typed,
            (View::Plain, Sureness::Likely, Some(likely)) => likely,
            (View::Plain, ..) => &self.subject.plain,
        };
        world.guesses.are_allowed = true;
        world.relaxed.extend(self.subject.demands_more());
        world.has_usual_keys = sureness == Sureness::Likely;
        let one = |undecided| vec![undecided];
        let new = root(&mut world, schema).map_err(one)?;
        let old = if update { Some(root(&mut world, schema).map_err(one)?) } else { None };
        let objects = Objects { new, old };
        if let Some(old) = old {
            kept(&mut world, self.subject, new, old).map_err(one)?;
        } else if let Some(fresh) = &self.subject.fresh_status {
            world.limit_status(new, fresh).map_err(one)?;
        }
        self.share_what_stays(&mut world, objects).map_err(one)?;
        let left = rules::ruling(&mut world, &self.left.rules, objects, 0);
        let right = self.right.map(|right| rules::ruling(&mut world, &right.rules, objects, 1)).transpose();
        let (left, right) = match (left, right) {
            (Ok(left), Ok(right)) => (left, right),
            (left, right) => {
                let mut undecided = left.err().unwrap_or_default();
                undecided.extend(right.err().unwrap_or_default());
                return Err(undecided);
            }
        };
        let mut broken = self.question.broken(&mut world, left, right);
        if let Some(that) = that {
            let assumed = rules::ruling(&mut world, &that.rules, objects, 0)?;
            let holds = world.terms.not(assumed.denied);
            broken = world.terms.and(&[broken, holds]);
        }
        world.assume_stable(&self.subject.stable, objects).map_err(one)?;
        let are_cut = world.is_bounded;
        // Where a server validates more than the schema, the smallest object is not valid yet and is completed elsewhere.
        if self.subject.demands_more().is_none() {
            for id in std::iter::once(new).chain(old) {
                world.complete(id, DEPTH).map_err(one)?;
            }
        }
        // Rules did not read the lists and maps that only complete an object, so the result holds for any number of items in them. With
        // alternatives (`anyOf`), the number could depend on other fields.
        if !has_alternatives(schema) {
            world.is_bounded = are_cut;
        }
        world.settle(&[broken]);
        Ok(Prepared { world, objects, broken })
    }

    /// Shares the status between old and new object where one request writes it and another writes the rest.
    fn share_what_stays(&self, world: &mut World<'_>, objects: Objects) -> Result<(), Undecided> {
        let Some(ways) = self.ways().filter(|_| self.subject.splits_status()) else { return Ok(()) };
        let Some(old) = objects.old else { return world.forget(objects.new, "status") };
        match ways {
            [way] => world.share(objects.new, old, |name| (way == "status") != (name == "status")),
            _ => {
                world.relax("the split of status and other fields between two requests");
                Ok(())
            }
        }
    }

    pub(super) fn ask(
        &self,
        prepared: &mut Prepared<'_>,
        that: Option<&Side>,
        solver: Option<&mut (dyn Solver + '_)>,
        over: &dyn Fn() -> bool,
    ) -> Result<Verdict, Unconfirmed> {
        let Some(solver) = solver else { return Ok(self.search(prepared, that, over)) };
        if prepared.world.terms.known_bool(prepared.broken) == Some(false) {
            return Ok(prepared.holds());
        }
        let (script, texts) = script(&prepared.world, prepared.broken);
        let answers = match solver.ask(&script) {
            Ok(text) => model::answers(&script, &text),
            Err(error @ (SolverError::TimedOut | SolverError::OutOfMemory(_))) => {
                return Ok(self.tried(prepared, that, &error.to_string(), over));
            }
            Err(SolverError::Broken(why)) => return Ok(Verdict::Undecided(vec![undecided(why)])),
        };
        match answers.first() {
            // The claim was not tested for strings that always split into more parts than modelled.
            Some(Sat::No) if answers.iter().rev().take(prepared.world.cut_texts.len()).any(is_no) => {
                let what = format!("strings that split into more than {} parts", prepared.world.items);
                return Ok(Verdict::Undecided(vec![undecided(what)]));
            }
            Some(Sat::No) => return Ok(self.beyond(prepared, that, solver, over)),
            Some(Sat::Yes(_)) => {}
            Some(Sat::Unknown) | None => return Ok(self.tried(prepared, that, "the solver gave up", over)),
        }
        let models = answers.into_iter().filter_map(|answer| match answer {
            Sat::Yes(model) => Some(model.into_iter().chain(texts.clone()).collect::<Model>()),
            Sat::No | Sat::Unknown => None,
        });
        let (models, mut last): (Vec<Model>, _) = (models.collect(), None);
        let world = &prepared.world;
        let first =
            models.iter().flat_map(|model| world.respellings(model).into_iter().chain([model.clone()]));
        for model in
            first.chain(models.iter().flat_map(|model| variants(&prepared.world, prepared.broken, model)))
        {
            if last.is_some() && over() {
                break;
            }
            for request in self.requests(prepared, &model) {
                if let Some(found) = self.confirmed(&request, that) {
                    let confirmed = |request: &(Json, Option<Json>)| self.confirmed(request, that);
                    return Ok(Verdict::Refuted(Box::new(shrunk(found, confirmed, over))));
                }
                last = last.or(Some(request));
            }
        }
        let not_followed: Vec<Undecided> =
            world.guesses.made.iter().chain(&world.readings.notes).cloned().collect();
        if !not_followed.is_empty() {
            return Ok(Verdict::Undecided(not_followed));
        }
        if !prepared.world.relaxed.is_empty() {
            let left_out: Vec<&str> = prepared.world.relaxed.iter().map(String::as_str).collect();
            let what = format!("unsupported constraints of the schema: {}", left_out.join(", "));
            return Ok(Verdict::Undecided(vec![undecided(what)]));
        }
        // Output printed before the timeout may be an incomplete model.
        if over() {
            return Ok(Verdict::Undecided(vec![undecided(SolverError::TimedOut.to_string())]));
        }
        Err(Unconfirmed { object: last.map_or(Json::Null, |(object, _)| object) })
    }

    /// Builds the request of a model: completed with what else a server requires, and as it is.
    pub(super) fn requests(&self, prepared: &Prepared<'_>, model: &Model) -> Vec<(Json, Option<Json>)> {
        let object = |id: NodeId| prepared.world.object(id, model).ok();
        let (new, old) = (object(prepared.objects.new), prepared.objects.old.map(object));
        let (Some(new), None | Some(Some(_))) = (new, &old) else { return Vec::new() };
        let old = old.flatten();
        let ways = self.ways().unwrap_or_default();
        let mut found = self.subject.completed(&new, old.as_ref(), ways);
        found.push((new, old));
        found
    }

    /// Returns the subresources whose updates a policy matches; `None` for definitions.
    fn ways(&self) -> Option<&[String]> {
        requests_of(self.left).map(|(_, updates)| updates)
    }

    /// Returns the request as the server reads it, if it is valid and breaks the claim.
    pub(super) fn confirmed(
        &self,
        request: &(Json, Option<Json>),
        that: Option<&Side>,
    ) -> Option<Counterexample> {
        let taken = self.subject.taken(&request.0, request.1.as_ref(), self.ways());
        taken.into_iter().find_map(|taken| self.breaks(taken, request, that))
    }

    fn breaks(
        &self,
        taken: Taken,
        request: &(Json, Option<Json>),
        that: Option<&Side>,
    ) -> Option<Counterexample> {
        let Taken { object, old_object, subresource } = taken;
        let said = |side: &Side| side.said(self.subject, &object, old_object.as_ref());
        if that.is_some_and(|that| said(that).denied) {
            return None;
        }
        let said: Vec<Said> = std::iter::once(self.left).chain(self.right).map(said).collect();
        if !self.question.is_broken(&said) {
            return None;
        }
        let (object, old_object) = if self.subject.shows_defaults() || !subresource.is_empty() {
            (object, old_object)
        } else {
            request.clone()
        };
        Some(Counterexample { object, old_object, subresource, said })
    }
}

/// Returns whether a policy matches creations, and which updates it matches; `None` for definitions.
fn requests_of(side: &Side) -> Option<(bool, &[String])> {
    match &side.rules {
        Rules::Definition(_) => None,
        Rules::Policy(rules) => Some((rules.matched.creates, &rules.matched.updates)),
    }
}

fn is_no(answer: &Sat) -> bool {
    !matches!(answer, Sat::Yes(_))
}
