//! Decides many changes of one definition with scripts whose size grows linearly with the definition, not quadratically.
//!
//! First it asks, without values, whether some object shows each change, and for one base object of which nothing is newly rejected.
//! For each change it then asks for a variant of that base object that differs only in the variables of that change: a small query. The
//! remaining changes are asked about separately, up to a limit; each object found becomes another base.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::literal::{written_int, written_text};
use super::model::{Given, Model, Sat};
use super::refusals::{Many, Question, Report, Round, answers};
use super::term::{Term, Terms};
use super::{Solver, undecided};

/// The maximum number of changes that get a query of their own.
const MOST_ALONE: usize = 8;
/// The maximum number of changes that are decided at all.
const MOST_CHANGES: usize = 10_000;
/// Variables that more changes than this share keep the value of the base object.
const FEW: usize = 8;

/// Indexes the variables of changes and assumptions.
struct Index {
    /// For each change, its variables that few changes share.
    own: Vec<Vec<Term>>,
    /// For each of these variables, the assumptions about it.
    assumptions: BTreeMap<Term, Vec<Term>>,
}

impl Index {
    fn of(terms: &Terms, many: &Many<'_>) -> Self {
        let of_each: Vec<Vec<Term>> =
            many.goals.iter().map(|goal| terms.variables_of(std::slice::from_ref(goal))).collect();
        let mut popular: BTreeMap<Term, usize> = BTreeMap::new();
        for variable in of_each.iter().flatten() {
            let count = popular.entry(*variable).or_default();
            *count = count.saturating_add(1);
        }
        let is_own = |variable: &Term| popular.get(variable).is_some_and(|count| *count <= FEW);
        let own: Vec<Vec<Term>> =
            of_each.iter().map(|all| all.iter().copied().filter(is_own).collect()).collect();
        let mut assumptions: BTreeMap<Term, Vec<Term>> = BTreeMap::new();
        for assumed in many.assumed {
            for variable in terms.variables_of(std::slice::from_ref(assumed)).iter().filter(|one| is_own(one))
            {
                assumptions.entry(*variable).or_default().push(*assumed);
            }
        }
        Self { own, assumptions }
    }
}

impl Question<'_> {
    pub(super) fn asked_of_many(&self, round: &Round<'_>, solver: &mut dyn Solver, report: &mut Report) {
        let many = round.many;
        if many.goals.len() > MOST_CHANGES {
            let what = format!("too many changes: {}", many.goals.len());
            report.undecided.push(undecided(what));
            return;
        }
        let first = answers(solver, &self.overview(many), 3).unwrap_or_default();
        let is_vacuous = self.is_vacuous(first.get(many.goals.len().saturating_add(2)..), many, solver);
        let mut first = first.into_iter();
        // The base is an object of which nothing is newly rejected, or else any object.
        let base = match (first.next(), first.next()) {
            (Some(Sat::Yes(model)), _) | (_, Some(Sat::Yes(model))) => model,
            _ => Model::new(),
        };
        let of_each: Vec<Sat> = first.take(many.goals.len()).collect();
        let (mut open, mut silent) = (Vec::new(), Vec::new());
        for (at, change) in self.changes.iter().enumerate() {
            match of_each.get(at) {
                Some(Sat::No) => self.holds(change, is_vacuous, report),
                Some(Sat::Yes(_)) => open.push(at),
                Some(Sat::Unknown) | None => silent.push(at),
            }
        }
        silent.extend(self.show(round, base.clone(), open, solver, report));
        self.each_alone(round, &silent, (&base, is_vacuous), solver, report);
    }

    /// Looks for an object for each open change; returns the rules for which none was found.
    fn show(
        &self,
        round: &Round<'_>,
        mut base: Model,
        mut open: Vec<usize>,
        solver: &mut dyn Solver,
        report: &mut Report,
    ) -> Vec<usize> {
        let mut hidden = Vec::new();
        let index = Index::of(&self.world.terms, round.many);
        for _ in 0..=MOST_ALONE {
            if open.is_empty() || (round.over)() {
                break;
            }
            let near = answers(solver, &self.near(round.many, &index, &open, &base), 3).unwrap_or_default();
            let mut near = near.iter();
            open.retain(|at| {
                let Some(change) = self.changes.get(*at) else { return false };
                let models = near.next().into_iter().filter_map(|answer| merged(answer, &base, round.many));
                let found = self.shown(change, models, round.trial, round.over);
                let is_open = found.is_none();
                report.breaks.extend(found);
                is_open
            });
            let Some(at) = open.first().copied() else { break };
            open.retain(|other| *other != at);
            let (Some(change), Some(goal)) = (self.changes.get(at), round.many.goals.get(at)) else { break };
            let answer = answers(solver, &self.one(round.many, *goal), 3).unwrap_or_default();
            let models: Vec<Model> =
                answer.iter().filter_map(|answer| merged(answer, &base, round.many)).collect();
            match self.shown(change, models.iter().cloned(), round.trial, round.over) {
                Some(found) => report.breaks.push(found),
                None if change.rule.is_some() => hidden.push(at),
                None => report.undecided.push(self.why(change, &answer).of(1, &change.place)),
            }
            base = models.into_iter().next().unwrap_or(base);
        }
        for change in open.iter().filter_map(|at| self.changes.get(*at)) {
            let what = if (round.over)() {
                "the time was over before an object was found"
            } else {
                "more changes that depend on one another than are asked about"
            };
            report.undecided.push(undecided(what).of(1, &change.place));
        }
        hidden
    }

    /// Asks for an object with no new rejection, one with any, and whether each change has one.
    fn overview(&self, many: &Many<'_>) -> String {
        let terms = &self.world.terms;
        let mut script = self.preamble(many.assumed, many.goals);
        let roots: Vec<Term> = many.assumed.iter().chain(many.goals).copied().collect();
        let ask = terms.asked(&roots);
        script.push_str("(push 1)\n");
        for goal in many.goals {
            let _ = writeln!(script, "(assert (not {}))", terms.name(*goal));
        }
        let _ = write!(script, "{ask}(pop 1)\n{ask}");
        for goal in many.goals {
            let _ = writeln!(script, "(push 1)\n(assert {})\n(check-sat)\n(pop 1)", terms.name(*goal));
        }
        self.ask_of_texts(&mut script);
        script
    }

    /// For each open change, asks for a variant of the base object in the change's own variables.
    fn near(&self, many: &Many<'_>, index: &Index, open: &[usize], base: &Model) -> String {
        let terms = &self.world.terms;
        let mut script = String::from("(set-option :produce-models true)\n(set-logic ALL)\n");
        for at in open {
            let Some((own, goal)) = index.own.get(*at).zip(many.goals.get(*at)) else { continue };
            let about = own.iter().filter_map(|variable| index.assumptions.get(variable)).flatten();
            let mut roots: BTreeSet<Term> = about.copied().collect();
            roots.insert(*goal);
            let roots: Vec<Term> = roots.into_iter().collect();
            script.push_str("(push 1)\n");
            terms.write_with(&roots, &mut script, &|variable, name| {
                if own.contains(&variable) { None } else { base.get(name).map(written) }
            });
            for root in &roots {
                let _ = writeln!(script, "(assert {})", terms.name(*root));
            }
            script.push_str(&terms.asked_of(own));
            script.push_str("(pop 1)\n");
        }
        script
    }

    /// Asks for any object that shows one change.
    fn one(&self, many: &Many<'_>, goal: Term) -> String {
        let roots: Vec<Term> = many.assumed.iter().chain([&goal]).copied().collect();
        let mut script = self.preamble(many.assumed, &[goal]);
        let _ = writeln!(script, "(assert {})", self.world.terms.name(goal));
        script + &self.world.terms.asked(&roots)
    }
}

/// Completes a model with the base's values for variables that it leaves out.
fn merged(answer: &Sat, base: &Model, many: &Many<'_>) -> Option<Model> {
    let Sat::Yes(model) = answer else { return None };
    let mut all = base.clone();
    all.extend(many.texts.clone());
    all.extend(model.clone());
    Some(all)
}

fn written(given: &Given) -> String {
    match given {
        Given::Bool(value) => value.to_string(),
        Given::Int(value) => written_int(*value),
        Given::Text(text) => written_text(text),
    }
}
