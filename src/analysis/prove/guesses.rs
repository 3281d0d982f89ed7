//! What is taken for anything that it may be, and why.

use std::collections::HashMap;

use super::Undecided;
use super::term::Term;

/// Guesses that are remembered.
pub(super) const MOST_KNOWN: usize = 2_000;

/// What was taken for anything.
#[derive(Debug, Default)]
pub(super) struct Guesses {
    /// Whether any may be made: not where terms are held against the engine.
    pub(super) are_allowed: bool,
    /// The side and the field that are evaluated.
    pub(super) at: (usize, String),
    /// Why, and where.
    pub(super) made: Vec<Undecided>,
    /// Whether an expression fails and whether it is true, by the expression and what its names stand for.
    pub(super) known: HashMap<String, (Term, Term)>,
}
