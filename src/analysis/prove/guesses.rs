//! Holds the boolean guesses of a query and their reasons.

use std::collections::{BTreeSet, HashMap};

use super::Undecided;
use super::term::Term;

/// The maximum number of remembered guesses.
pub(super) const MOST_KNOWN: usize = 2_000;

/// The guesses of a query.
#[derive(Debug, Default)]
pub(super) struct Guesses {
    /// Whether guesses are allowed; not where tests compare terms with the engine.
    pub(super) are_allowed: bool,
    /// The side and the field being evaluated.
    pub(super) at: (usize, String),
    /// What was not translated, and where.
    pub(super) made: Vec<Undecided>,
    /// String literals of expressions that are not translated, and the object strings that they read.
    pub(super) literals: BTreeSet<String>,
    pub(super) texts: Vec<Term>,
    /// Whether an expression fails and whether it is true, keyed by the expression and the values of its
    /// names.
    pub(super) known: HashMap<String, (Term, Term)>,
}

/// Sample strings that string functions treat differently: addresses, names, numbers, times, paths.
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
/// The maximum number of strings to try.
const MOST_TEXTS: usize = 60;

impl Guesses {
    /// Returns strings that may change the result of a guessed expression.
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
