//! What is taken for anything that it may be, and why.

use std::collections::{BTreeSet, HashMap};

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
    /// Texts in expressions that are not followed, and the texts of objects that they are about.
    pub(super) literals: BTreeSet<String>,
    pub(super) texts: Vec<Term>,
    /// Whether an expression fails and whether it is true, by the expression and what its names stand for.
    pub(super) known: HashMap<String, (Term, Term)>,
}

/// Texts that functions on texts tell apart: addresses, names, numbers, times, paths.
const USUAL: [&str; 22] = [
    "",
    "a",
    "A",
    "-",
    "0",
    "1",
    "-1",
    "a.b",
    "a/b",
    "a:1",
    "a@a",
    "a b",
    "10.0.0.1",
    "::1",
    "10.0.0.0/8",
    "http://a",
    "http://a/a?a#a",
    "a?a",
    "1s",
    "1h",
    "2000-01-01T00:00:00Z",
    "YWFh",
];
/// Texts that are tried.
const MOST_TEXTS: usize = 60;

impl Guesses {
    /// Texts that may make a difference.
    pub(super) fn candidates(&self) -> Vec<String> {
        let usual = USUAL.iter().map(|text| (*text).to_owned());
        let own = self.literals.iter().flat_map(|literal| {
            [literal.clone(), format!("a{literal}"), format!("{literal}a"), format!("a{literal}a")]
        });
        let few = self.literals.iter().take(3);
        let pairs = few.clone().flat_map(|one| few.clone().map(move |other| format!("{one}{other}")));
        let long = std::iter::once("a".repeat(300));
        let mut found: Vec<String> = Vec::new();
        for text in usual.chain(long).chain(own).chain(pairs).take(MOST_TEXTS) {
            if !found.contains(&text) {
                found.push(text);
            }
        }
        found
    }
}
