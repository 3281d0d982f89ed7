//! Changes that a solver did not answer about among others: each is asked about alone, first with no more of what is assumed than has
//! to do with it.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::model::{Model, Sat};
use super::refusals::{Many, Question, Report, Round, answers};
use super::term::{Term, Terms};
use super::{Solver, Undecided, undecided};

/// How far from a change what is assumed may be.
const STEPS: usize = 4;

impl Question<'_> {
    /// Asks about changes, each alone.
    pub(super) fn each_alone(
        &self,
        round: &Round<'_>,
        open: &[usize],
        (base, is_vacuous): (&Model, bool),
        solver: &mut dyn Solver,
        report: &mut Report,
    ) {
        let Round { many, trial, over } = *round;
        for (nth, at) in open.iter().enumerate() {
            let (Some(change), Some(goal)) = (self.changes.get(*at), self.unblocked.get(*at)) else {
                continue;
            };
            if over() {
                report.undecided.push(undecided("the solver did not answer in time").of(1, &change.place));
                continue;
            }
            let (answer, error) = self.alone(many, *goal, open.len().saturating_sub(nth), solver);
            if let (true, Some(why)) = (answer.is_empty(), error) {
                report.undecided.push(why.of(1, &change.place));
                continue;
            }
            if answer.contains(&Sat::No) {
                self.holds(change, is_vacuous, report);
                continue;
            }
            let models = answer.iter().rev().filter_map(|answer| match answer {
                Sat::Yes(model) => {
                    let mut all = base.clone();
                    all.extend(many.texts.clone());
                    all.extend(model.clone());
                    Some(all)
                }
                Sat::No | Sat::Unknown => None,
            });
            match self.shown(change, models, trial, over) {
                Some(found) => report.breaks.push(found),
                None => report.undecided.push(self.why(change, &answer).of(1, &change.place)),
            }
        }
    }

    /// Whether there is an object that shows a change: with what has to do with it, and with all that is assumed.
    fn alone(
        &self,
        many: &Many<'_>,
        goal: Term,
        left: usize,
        solver: &mut dyn Solver,
    ) -> (Vec<Sat>, Option<Undecided>) {
        let terms = &self.world.terms;
        let near = terms.near(goal, many.assumed);
        let (mut found, mut error) = (Vec::new(), None);
        for (assumed, parts) in [(&*near, 3_usize), (many.assumed, 2)] {
            let roots: Vec<Term> = assumed.iter().chain([&goal]).copied().collect();
            let mut script = self.preamble(assumed, &[goal]);
            let _ = writeln!(script, "(assert {})", terms.name(goal));
            script.push_str(&terms.asked(&roots));
            let answer = answers(solver, &script, parts.saturating_mul(left));
            let answer = answer.unwrap_or_else(|why| {
                error = Some(why);
                Vec::new()
            });
            // What has no model with less has none with more.
            let is_refuted = answer.first() == Some(&Sat::No);
            found.extend(answer.into_iter().take(1));
            if is_refuted || near.len() == many.assumed.len() {
                break;
            }
        }
        (found, error)
    }
}

impl Terms {
    /// What of the assumptions is about the same numbers and texts as a goal, or about such as are tied to them. Truth values tie all
    /// to all: whether the object is there in which something is.
    fn near(&self, goal: Term, assumed: &[Term]) -> Vec<Term> {
        let mut known: BTreeSet<Term> = self.variables_of(&[goal]).into_iter().collect();
        let mut far: Vec<(Term, Vec<Term>)> =
            assumed.iter().map(|term| (*term, self.variables_of(std::slice::from_ref(term)))).collect();
        let mut near = Vec::new();
        for _ in 0..STEPS {
            let before = near.len();
            let sight = known.clone();
            far.retain(|(term, variables)| {
                let is_tied = |variable: &Term| {
                    sight.contains(variable) && (self.is_int(*variable) || self.is_text(*variable))
                };
                let is_near = variables.iter().any(is_tied)
                    || variables.iter().all(|variable| sight.contains(variable));
                if is_near {
                    near.push(*term);
                    known.extend(variables);
                }
                !is_near
            });
            if near.len() == before {
                break;
            }
        }
        near
    }
}
