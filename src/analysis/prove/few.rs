//! Decides a small number of changes of one definition: all in one script, then each that is still open by
//! itself.

use super::Solver;
use super::changes::Change;
use super::model::{Model, Sat};
use super::refusals::{Question, Report, Round, answers};
use super::term::Term;
use super::written::Step;

/// Keywords whose violation keeps a server from running rules.
const BLOCKING: [&str; 5] = ["enum", "required", "maxLength", "maxItems", "type"];

impl Question<'_> {
    /// Returns when each change is reported: a rule only where no blocking violation keeps it from running.
    pub(super) fn unblocked(&mut self, step: Step) -> Vec<Term> {
        // Ratcheting takes unchanged values of another type, on which rules then fail.
        let is_taken = |keyword: &str| step == Step::Update && keyword == "type";
        let is_before = |change: &&Change| {
            let keyword = change.place.rsplit('.').next().unwrap_or_default();
            change.rule.is_none()
                && change.guessed.is_none()
                && BLOCKING.contains(&keyword)
                && !is_taken(keyword)
        };
        let before: Vec<Term> = self.changes.iter().filter(is_before).map(|change| change.refused).collect();
        let before = self.world.terms.or(&before);
        let none = self.world.terms.not(before);
        let mut unblocked = Vec::new();
        for change in &self.changes {
            let refused = change.refused;
            let is_rule = change.rule.is_some();
            unblocked.push(if is_rule { self.world.terms.and(&[refused, none]) } else { refused });
        }
        unblocked
    }

    pub(super) fn asked_of_few(
        &self,
        round: &Round<'_>,
        roots: &[Term],
        solver: &mut dyn Solver,
        report: &mut Report,
    ) {
        let Round { many, trial, over } = *round;
        if self.changes.len() == 1 {
            let is_vacuous = self.is_vacuous(None, many, solver);
            return self.each_alone(round, &[0], (&Model::new(), is_vacuous), solver, report);
        }
        let refuted = self.refuted_nearby(many, solver);
        let left: Vec<usize> = (0..self.changes.len()).filter(|at| !refuted.contains(at)).collect();
        let goals: Vec<Term> = left.iter().filter_map(|at| many.goals.get(*at)).copied().collect();
        let answers = if goals.is_empty() {
            Vec::new()
        } else {
            answers(solver, &self.script(many.assumed, &goals, roots), 2).unwrap_or_default()
        };
        // For each change: is there an object that shows it, and is there one that violates nothing else?
        let each = if goals.len() > 1 { 2 } else { 1 };
        let is_vacuous = self.is_vacuous(answers.get(goals.len().saturating_mul(each)..), many, solver);
        let mut of_each = answers.chunks(each);
        let (mut open, mut base) = (Vec::new(), Model::new());
        for (at, change) in self.changes.iter().enumerate() {
            if refuted.contains(&at) {
                self.holds(change, is_vacuous, report);
                continue;
            }
            let answer = of_each.next().unwrap_or_default();
            let mut models = Vec::new();
            for model in answer.iter().rev() {
                if let Sat::Yes(model) = model {
                    models.push(model.clone().into_iter().chain(many.texts.clone()).collect::<Model>());
                }
            }
            if answer.first() == Some(&Sat::No) {
                self.holds(change, is_vacuous, report);
            } else if let Some(first) = models.first().cloned() {
                match self.shown(change, models.into_iter(), trial, over) {
                    Some(found) => report.breaks.push(found),
                    None if change.rule.is_some() => open.push(at),
                    None => report.undecided.push(self.why(change, answer).of(1, &change.place)),
                }
                base = first;
            } else {
                open.push(at);
            }
        }
        self.each_alone(round, &open, (&base, is_vacuous), solver, report);
    }
}
