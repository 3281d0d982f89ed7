//! Asks the solver about single changes that it left open when asked about many: first with only the
//! assumptions related to the change, then with all of them.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::model::{Model, Sat};
use super::refusals::{Many, Question, Report, Round, answers};
use super::term::{Term, Terms};
use super::{Solver, Undecided, undecided};

/// How many shared variables away from a change an assumption may be to count as related.
const STEPS: usize = 4;

impl Question<'_> {
    /// Decides each change by a query of its own.
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

    /// Returns the changes that reject nothing even with the related assumptions alone: a query of a few variables, where that with
    /// all assumptions has thousands.
    pub(super) fn refuted_nearby(&self, many: &Many<'_>, solver: &mut dyn Solver) -> BTreeSet<usize> {
        let terms = &self.world.terms;
        let near: Vec<Vec<Term>> =
            self.unblocked.iter().map(|goal| terms.near(*goal, many.assumed)).collect();
        if near.iter().all(|near| near.len() == many.assumed.len()) {
            return BTreeSet::new();
        }
        let roots: Vec<Term> = near.iter().flatten().chain(&self.unblocked).copied().collect();
        let mut script = self.preamble(&[], &roots);
        for (goal, near) in self.unblocked.iter().zip(&near) {
            script.push_str("(push 1)\n");
            for assumed in near.iter().chain([goal]) {
                let _ = writeln!(script, "(assert {})", terms.name(*assumed));
            }
            script.push_str("(check-sat)\n(pop 1)\n");
        }
        let answers = answers(solver, &script, 4).unwrap_or_default();
        answers.iter().enumerate().filter(|(_, answer)| **answer == Sat::No).map(|(at, _)| at).collect()
    }

    /// Looks for an object that shows a change: first with the related assumptions, then with all of them.
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
            // Unsatisfiable with fewer assumptions means unsatisfiable with all of them.
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
    /// Selects the assumptions that share number or string variables with a goal, directly or through other
    /// assumptions. Boolean variables do not count: the presence of parents would relate everything to
    /// everything.
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
