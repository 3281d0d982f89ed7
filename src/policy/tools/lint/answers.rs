//! Caches, per expression text, whether a condition has the same result for every object.

use super::{logic, unbound};
use crate::recent::Recent;
use crate::report::recording::Expression;

/// The maximum size of cached texts in bytes.
const MAX_TEXTS: usize = 2 << 20;
/// The size of an entry beside its text.
const PER_ANSWER: usize = 100;

/// The cached results of conditions, by text.
#[derive(Debug)]
pub(super) struct Answers(Recent<Box<str>, Option<bool>>);

impl Default for Answers {
    fn default() -> Self {
        Self(Recent::of(MAX_TEXTS))
    }
}

impl Answers {
    /// The answer of a condition that is the same for every object.
    pub(super) fn constant(&mut self, expression: &Expression<'_>) -> Option<bool> {
        unbound::constant(expression.program).or_else(|| self.by_form(expression.text))
    }

    fn by_form(&mut self, text: &str) -> Option<bool> {
        if let Some(known) = self.0.get(text) {
            return known;
        }
        let answer = logic::constant(text);
        self.0.put(text.into(), answer, text.len().saturating_add(PER_ANSWER));
        answer
    }
}
