//! Asks again with more items where a claim holds for a few: with as many as its rules and bounds name.
//!
//! Copies of items ([`super::longer`]) show what depends on the length of a list. What depends on the number of items of some sort, or of
//! parts of a string, takes a query that models so many. It is larger, so it gets little time and space: without an answer, the claim
//! holds for a few.

use super::document::{NodeId, World};
use super::refusals::{Break, Question, Report};
use super::term::{Constant, Term};
use super::view::View;
use super::{Solver, SolverError, Undecided};

/// The most items of a list or map in a wider query.
const MOST: usize = 32;
/// The parts of a string that is split.
const TEXT_PARTS: usize = 8;
/// The fraction of the remaining time that each question to the solver may take.
const PARTS: usize = 24;
/// The most questions to the solver.
const MOST_QUESTIONS: usize = 4;
/// The steps of a wider query.
const STEPS: usize = 1_000_000;

/// A solver for a part of the time.
pub(super) struct Part<'s> {
    solver: &'s mut (dyn Solver + 's),
    asked: usize,
}

impl<'s> Part<'s> {
    pub(super) fn of(solver: &'s mut (dyn Solver + 's)) -> Self {
        Self { solver, asked: 0 }
    }
}

impl Solver for Part<'_> {
    fn ask(&mut self, script: &str) -> Result<String, SolverError> {
        self.ask_in_part(script, 1)
    }

    fn ask_in_part(&mut self, script: &str, parts: usize) -> Result<String, SolverError> {
        if self.asked >= MOST_QUESTIONS {
            return Err(SolverError::TimedOut);
        }
        self.asked = self.asked.saturating_add(1);
        self.solver.ask_in_part(script, parts.saturating_mul(PARTS))
    }
}

impl World<'_> {
    /// Creates the world of a wider query, with less space.
    pub(super) fn wide(items: usize, view: View) -> Self {
        let mut world = Self::new(items, view);
        world.limit_steps(STEPS);
        world
    }

    /// Returns the number of items that covers the numbers in the terms and the bounds of what is cut below the root, if a wider query
    /// can model more than this one.
    pub(super) fn wider(&mut self, root: NodeId, terms: &[Term]) -> Option<usize> {
        if !self.is_bounded {
            return None;
        }
        let numbers = self.terms.constants_of(terms).into_iter().filter_map(|constant| match constant {
            Constant::Int(value) => usize::try_from(value).ok()?.checked_add(1),
            Constant::Text(_) => None,
        });
        let numbers: Vec<usize> = numbers.collect();
        let bounds = self.cuts(root).unwrap_or_default().into_iter().map(|cut| cut.most());
        // A comparison of a number of parts with more than are modelled is known, and its term is gone.
        let parts = (!self.cut_texts.is_empty()).then_some(TEXT_PARTS);
        bounds.chain(numbers).chain(parts).filter(|number| *number > self.items && *number <= MOST).max()
    }
}

impl Question<'_> {
    /// Returns the number of items with which to ask again about what holds for a few.
    pub(super) fn wider(&mut self, report: &Report) -> Option<usize> {
        report.up_to?;
        let is_broken = |place: &str| report.breaks.iter().any(|found| found.place == place);
        let open = self.changes.iter().filter(|change| !is_broken(&change.place));
        let terms: Vec<Term> = open.map(|change| change.refused).collect();
        self.world.wider(self.roots.0, &terms)
    }
}

impl Report {
    /// Returns the report with what a wider query found.
    pub(super) fn widened(mut self, wider: Self) -> Self {
        let is_open = |one: &Undecided| self.undecided.iter().any(|known| known.field == one.field);
        let has_decided = wider.undecided.iter().all(is_open);
        let is_told = |found: &Break, told: &[Break]| {
            told.iter().any(|known| (&known.place, &known.field) == (&found.place, &found.field))
        };
        let new: Vec<Break> =
            wider.breaks.into_iter().filter(|found| !is_told(found, &self.breaks)).collect();
        if has_decided {
            self.undecided = wider.undecided;
            self.up_to = wider.up_to;
        }
        self.undecided.retain(|one| !new.iter().any(|found| one.field.as_ref() == Some(&found.place)));
        self.breaks.extend(new);
        self
    }
}
