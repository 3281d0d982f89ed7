//! The questions: what is asked of a solver, and what its answer means.

use std::sync::Arc;

use super::document::{NodeId, World};
use super::model::{self, Model, Sat};
use super::placed::Objects;
use super::roots::{DEPTH, has_alternatives, root, same_identity};
use super::rules::{self, Ruling};
use super::script::{script, variants};
use super::search;
use super::shrink::shrunk;
use super::side::{Rules, Side, Subject};
use super::term::Term;
use super::upgrade::Upgrade;
use super::view::View;
use super::written::Step;
use super::{Counterexample, Said, Solver, SolverError, Unconfirmed, Undecided, Verdict, undecided};
use serde_json::Value as Json;

/// What is claimed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Question {
    /// The right side refuses what the left one refuses, and nothing else.
    Equivalent,
    /// What the left side lets through, the right one does.
    Implies,
    /// The left side refuses nothing.
    NeverDenies,
    /// The left side refuses everything.
    AlwaysDenies,
    /// No expression of the left side fails.
    NoErrors,
}

impl Question {
    /// Whether two sides are compared.
    #[must_use]
    pub const fn compares(self) -> bool {
        matches!(self, Self::Equivalent | Self::Implies)
    }

    /// Whether what was said breaks the claim.
    fn is_broken(self, said: &[Said]) -> bool {
        let denied = |at: usize| said.get(at).is_some_and(|said| said.denied);
        match self {
            Self::Equivalent => denied(0) != denied(1),
            Self::Implies => !denied(0) && denied(1),
            Self::NeverDenies => denied(0),
            Self::AlwaysDenies => !denied(0),
            Self::NoErrors => said.first().is_some_and(|said| said.failed),
        }
    }

    fn broken(self, world: &mut World<'_>, left: Ruling, right: Option<Ruling>) -> Term {
        let terms = &mut world.terms;
        let right = right.unwrap_or(left);
        match self {
            Self::Equivalent => {
                let same = terms.eq(left.denied, right.denied);
                terms.not(same)
            }
            Self::Implies => {
                let admitted = terms.not(left.denied);
                terms.and(&[admitted, right.denied])
            }
            Self::NeverDenies => left.denied,
            Self::AlwaysDenies => terms.not(left.denied),
            Self::NoErrors => left.failed,
        }
    }
}

/// A claim, and what it is about.
#[derive(Debug)]
pub struct Inquiry<'a> {
    /// What is claimed.
    pub question: Question,
    /// The kind of the objects.
    pub subject: &'a Subject,
    /// The rules.
    pub left: &'a Side,
    /// What they are compared with.
    pub right: Option<&'a Side>,
    /// An expression that holds for the objects.
    pub that: Option<&'a str>,
    /// Items of lists and entries of maps that are thought of, where no fewer are declared.
    pub items: usize,
}

/// Small objects that are tried where a solver gives no answer.
const FEW: usize = 1_000;

/// What is sent to the solver for one operation.
#[derive(Debug)]
struct Prepared<'s> {
    world: World<'s>,
    objects: Objects,
    broken: Term,
}

impl<'a> Inquiry<'a> {
    /// Decides the claim; without a solver, looks for objects that break it.
    ///
    /// # Errors
    /// When the engine does not confirm what the solver found.
    pub fn decide(
        &self,
        solver: Option<&mut dyn Solver>,
        over: &dyn Fn() -> bool,
    ) -> Result<Verdict, Unconfirmed> {
        if let Some((at, side)) = self.other_schema() {
            let mut differs = undecided("a schema that differs in more than rules");
            differs.side = at;
            let decided = match (self.that, solver) {
                (None, Some(solver)) => self.across(side, solver, over),
                _ => None,
            };
            return Ok(decided.unwrap_or_else(|| Verdict::Undecided(vec![differs])));
        }
        if let Some(right) = self.right
            && operations_of(self.left) != operations_of(right)
        {
            return Ok(Verdict::Undecided(vec![undecided("policies that match other operations, compared")]));
        }
        let that = match self.that.map(|that| Side::assumption(that, self.left, self.subject)).transpose() {
            Ok(that) => that,
            Err(error) => return Ok(Verdict::Undecided(vec![undecided(error.0).of(0, "--that")])),
        };
        let mut solver = solver;
        let (mut up_to, mut open) = (None, Vec::new());
        for update in self.operations(that.as_ref()) {
            let mut prepared = match self.prepare(update, that.as_ref()) {
                Ok(prepared) => prepared,
                Err(undecided) => {
                    open.extend(undecided);
                    continue;
                }
            };
            let verdict = match solver.as_deref_mut() {
                Some(solver) => self.ask(&mut prepared, that.as_ref(), solver, over)?,
                None => self.search(&prepared, that.as_ref(), over),
            };
            match verdict {
                Verdict::Holds { up_to: bound } => up_to = up_to.or(bound),
                Verdict::Refuted(_) => return Ok(verdict),
                Verdict::Undecided(undecided) => open.extend(undecided),
            }
        }
        // Creations and updates have much in common.
        let mut told: Vec<Undecided> = Vec::new();
        for undecided in open {
            if !told.contains(&undecided) {
                told.push(undecided);
            }
        }
        let open = told;
        Ok(if open.is_empty() { Verdict::Holds { up_to } } else { Verdict::Undecided(open) })
    }

    /// A side whose schema is not that of the objects.
    fn other_schema(&self) -> Option<(usize, &'a Side)> {
        let mut compared = std::iter::once(self.left).chain(self.right).enumerate();
        compared.find(|(_, side)| !self.subject.has_schema_of(side))
    }

    /// Of definitions whose schemas differ, too: what can be created. None where rules look at what was there before.
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

    /// Whether creations and updates are asked about.
    fn operations(&self, that: Option<&Side>) -> Vec<bool> {
        let sides: Vec<&Side> = std::iter::once(self.left).chain(self.right).collect();
        // Of policies, what they match says which requests there are, and not what is assumed of them.
        let that = that.filter(|that| matches!(that.rules, Rules::Definition(_)));
        let looks_back = sides.iter().copied().chain(that).any(|side| rules::looks_back(&side.rules));
        let creates = |side: &&Side| match &side.rules {
            Rules::Definition(_) => true,
            Rules::Policy(rules) => rules.operations.contains(&admit_policy::Operation::Create),
        };
        let mut operations = Vec::new();
        operations.extend(sides.iter().any(creates).then_some(false));
        operations.extend(looks_back.then_some(true));
        operations
    }

    fn view(&self) -> View {
        rules::view(&self.left.rules)
    }

    fn prepare(&self, update: bool, that: Option<&Side>) -> Result<Prepared<'a>, Vec<Undecided>> {
        let mut world = World::new(self.items, self.view());
        world.guesses.are_allowed = true;
        let schema = match self.view() {
            View::Typed => &self.subject.typed,
            View::Plain => &self.subject.plain,
        };
        let one = |undecided| vec![undecided];
        let new = root(&mut world, schema).map_err(one)?;
        let old = if update { Some(root(&mut world, schema).map_err(one)?) } else { None };
        let objects = Objects { new, old };
        if let Some(old) = old {
            same_identity(&mut world, new, old).map_err(one)?;
        }
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
        let are_cut = world.is_bounded;
        for id in std::iter::once(new).chain(old) {
            world.complete(id, DEPTH).map_err(one)?;
        }
        // No rule looked at the lists and maps that only complete an object: with fewer items in them it is one too, and the rules
        // say the same. Alternatives could ask for many items of one where something else is so.
        if !has_alternatives(schema) {
            world.is_bounded = are_cut;
        }
        world.settle(&[broken]);
        Ok(Prepared { world, objects, broken })
    }

    fn ask(
        &self,
        prepared: &mut Prepared<'_>,
        that: Option<&Side>,
        solver: &mut dyn Solver,
        over: &dyn Fn() -> bool,
    ) -> Result<Verdict, Unconfirmed> {
        let holds = |world: &World<'_>| Verdict::Holds { up_to: world.is_bounded.then_some(world.items) };
        if prepared.world.terms.known_bool(prepared.broken) == Some(false) {
            return Ok(holds(&prepared.world));
        }
        let (script, texts) = script(&prepared.world, prepared.broken);
        let answers = match solver.ask(&script) {
            Ok(text) => model::answers(&script, &text),
            Err(error @ SolverError::TimedOut) => {
                return Ok(self.tried(prepared, that, &error.to_string(), over));
            }
            Err(SolverError::Broken(why)) => return Ok(Verdict::Undecided(vec![undecided(why)])),
        };
        match answers.first() {
            // Of texts that are all in more parts nothing was asked.
            Some(Sat::No) if answers.iter().rev().take(prepared.world.cut_texts.len()).any(is_no) => {
                let what = format!("texts in more than {} parts", prepared.world.items);
                return Ok(Verdict::Undecided(vec![undecided(what)]));
            }
            Some(Sat::No) => return Ok(holds(&prepared.world)),
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
            let request = Self::request(prepared, &model);
            if let Some(found) = request.as_ref().and_then(|request| self.confirmed(request, that)) {
                return Ok(Verdict::Refuted(Box::new(shrunk(
                    found,
                    |request| self.confirmed(request, that),
                    over,
                ))));
            }
            last = last.or(request);
        }
        let not_followed: Vec<Undecided> =
            world.guesses.made.iter().chain(&world.readings.notes).cloned().collect();
        if !not_followed.is_empty() {
            return Ok(Verdict::Undecided(not_followed));
        }
        if !prepared.world.relaxed.is_empty() {
            let left_out: Vec<&str> = prepared.world.relaxed.iter().map(String::as_str).collect();
            let what = format!("what the schema demands and is not followed: {}", left_out.join(", "));
            return Ok(Verdict::Undecided(vec![undecided(what)]));
        }
        // What the solver printed until its time was over may be half of a model.
        if over() {
            return Ok(Verdict::Undecided(vec![undecided(SolverError::TimedOut.to_string())]));
        }
        Err(Unconfirmed { object: last.map_or(Json::Null, |(object, _)| object) })
    }

    fn search(&self, prepared: &Prepared<'_>, that: Option<&Side>, over: &dyn Fn() -> bool) -> Verdict {
        match self.searched(prepared, that, usize::MAX, over) {
            Ok(found) => found,
            Err(tried) => {
                let what = format!(
                    "no solver; none of {tried} small objects breaks the claim, which does not prove it"
                );
                Verdict::Undecided(vec![undecided(what)])
            }
        }
    }

    /// Where a solver gives no answer, a few small objects may.
    fn tried(
        &self,
        prepared: &Prepared<'_>,
        that: Option<&Side>,
        why: &str,
        over: &dyn Fn() -> bool,
    ) -> Verdict {
        let found = self.searched(prepared, that, FEW, over);
        found.unwrap_or_else(|_| Verdict::Undecided(vec![undecided(why)]))
    }

    /// A small object that breaks the claim, or how many do not.
    fn searched(
        &self,
        prepared: &Prepared<'_>,
        that: Option<&Side>,
        most: usize,
        over: &dyn Fn() -> bool,
    ) -> Result<Verdict, usize> {
        let mut tried = 0_usize;
        for model in search::models(&prepared.world, prepared.broken).take(most) {
            if over() {
                break;
            }
            tried = tried.saturating_add(1);
            let model = prepared.world.respelled(&model);
            let found = Self::request(prepared, &model).and_then(|request| self.confirmed(&request, that));
            if let Some(found) = found {
                let confirmed = |request: &(Json, Option<Json>)| self.confirmed(request, that);
                return Ok(Verdict::Refuted(Box::new(shrunk(found, confirmed, over))));
            }
        }
        Err(tried)
    }

    fn request(prepared: &Prepared<'_>, model: &Model) -> Option<(Json, Option<Json>)> {
        let object = |id: NodeId| prepared.world.object(id, model).ok();
        let new = object(prepared.objects.new)?;
        match prepared.objects.old {
            Some(old) => Some((new, Some(object(old)?))),
            None => Some((new, None)),
        }
    }

    /// The request as a server reads it, if it is one and breaks the claim.
    fn confirmed(&self, request: &(Json, Option<Json>), that: Option<&Side>) -> Option<Counterexample> {
        let object = self.subject.settled(&request.0)?;
        let old_object = match &request.1 {
            Some(old) => Some(self.subject.settled(old)?),
            None => None,
        };
        let said = |side: &Side| side.said(self.subject, &object, old_object.as_ref());
        if that.is_some_and(|that| said(that).denied) {
            return None;
        }
        let said: Vec<Said> = std::iter::once(self.left).chain(self.right).map(said).collect();
        self.question.is_broken(&said).then_some(Counterexample { object, old_object, said })
    }
}

/// The operations that a policy matches; none for the rules of a definition.
fn operations_of(side: &Side) -> Option<&[admit_policy::Operation]> {
    match &side.rules {
        Rules::Definition(_) => None,
        Rules::Policy(rules) => Some(&rules.operations),
    }
}

fn is_no(answer: &Sat) -> bool {
    !matches!(answer, Sat::Yes(_))
}
