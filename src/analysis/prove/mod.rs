//! Decides claims about all objects of a kind with an SMT solver: whether two versions of rules agree, whether rules never or always
//! deny, whether rules can fail.
//!
//! ```text
//! rules ──eval──► terms ──script──► Solver ── unsat ──► holds
//! schema ─document─► what is assumed    └── sat ──► object ── engine agrees ──► refuted, made small
//! ```
//!
//! INVARIANT: `holds` is reported only if the solver refuted the opposite, with expressions translated exactly, for all objects that
//! the schema allows (a schema constraint left out adds objects, it never removes any). What cannot be translated is
//! [`Verdict::Undecided`], with the expression and the reason. admit-policy confirms a counterexample before it is reported.
//!
//! Claims are about values. They do not cover limits of CEL cost and request size, nor integers written with a fraction (`3.0`), which
//! the server keeps apart from `3` until it stores them.
//!
//! | part | decides |
//! |---|---|
//! | `term`, `literal` | SMT-LIB 2 terms and their text |
//! | `regular`, `sample`, `inclusion` | regular languages of patterns, sample strings of a schema, and which patterns include others |
//! | `document`, `roots`, `lists`, `demands`, `complete`, `needed` | an arbitrary object of a schema |
//! | `size` | the maximum size of a query |
//! | `made` | an object read with another schema |
//! | `value`, `equality`, `eval`, `attribute`, `calls`, `numbers` | the values of expressions |
//! | `texts`, `named`, `formats` | string functions and formats |
//! | `measures`, `reader`, `readings`, `reading` | quantities, timestamps and durations parsed from strings |
//! | `instants`, `zones` | accessors of timestamps and durations |
//! | `networks`, `parser`, `parsing` | addresses, networks and URLs parsed from strings |
//! | `derived`, `found` | strings derived from strings, and searches in strings |
//! | `guess`, `guesses`, `truth` | boolean subexpressions that cannot be translated |
//! | `whole`, `builtin` | what every object has; schemas of built-in kinds |
//! | `stable` | immutable fields, some of them conditionally |
//! | `subject`, `subjects` | the kind of the objects, which objects are valid, and the kinds that a policy matches |
//! | `matched` | which requests a policy matches |
//! | `side` | the compared rules, and the engine's verdict on an object |
//! | `view` | how expressions see objects |
//! | `rules`, `placed`, `told`, `fields` | verdicts of rules as terms, and the fields that rules read |
//! | `model` | answers of solvers, and the objects that they describe |
//! | `shrink`, `search`, `mended` | smaller counterexamples, counterexamples without a solver, and repaired objects |
//! | `beyond`, `longer` | counterexamples with more items than are modelled |
//! | `wider` | the same claim with more items modelled |
//! | `agree` | whether terms and engine agree on concrete objects |
//! | `question` | the claims |
//! | `query`, `script` | the queries, one after another |
//! | `pair`, `changes`, `refusals`, `few`, `many`, `alone`, `upgrade`, `written` | what a new version of a definition newly rejects |

mod agree;
mod alone;
mod attribute;
mod beyond;
mod builtin;
mod calls;
mod changes;
mod complete;
mod demands;
mod derived;
mod document;
mod equality;
mod eval;
mod few;
mod fields;
mod formats;
mod found;
mod guess;
mod guesses;
mod inclusion;
mod instants;
mod lists;
mod literal;
mod longer;
mod made;
mod many;
mod matched;
mod measures;
mod mended;
mod model;
mod named;
mod needed;
mod networks;
mod numbers;
mod pair;
mod parser;
mod parsing;
mod placed;
mod query;
mod question;
mod reader;
mod reading;
mod readings;
mod refusals;
mod regular;
mod roots;
mod rules;
mod sample;
mod script;
mod search;
mod shrink;
mod side;
mod size;
mod stable;
mod subject;
mod subjects;
mod term;
mod texts;
mod told;
mod truth;
mod upgrade;
mod value;
mod view;
mod whole;
mod wider;
mod written;
mod zones;

use admit_cel::Span;
use serde_json::Value as Json;

pub use agree::agreement;
pub use query::Inquiry;
pub use question::Question;
pub use refusals::{Break, Report};
pub use side::Side;
pub use subject::{SideError, Subject};
pub use subjects::{Kinds, KindsError};
pub use upgrade::Upgrade;
pub use written::Step;

/// Runs SMT-LIB 2 scripts.
pub trait Solver {
    /// Returns what the solver prints for the script, possibly cut off at a timeout.
    ///
    /// # Errors
    /// If it cannot be run, or stopped before it printed anything.
    fn ask(&mut self, script: &str) -> Result<String, SolverError>;

    /// Asks with only one of `parts` equal shares of the remaining time; solvers without a time limit ignore the share.
    ///
    /// # Errors
    /// As [`Self::ask`].
    fn ask_in_part(&mut self, script: &str, parts: usize) -> Result<String, SolverError> {
        let _ = parts;
        self.ask(script)
    }
}

/// Why a solver gave no answer.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum SolverError {
    /// Its time limit passed.
    #[error("the solver did not answer in time")]
    TimedOut,
    /// It reached its memory limit.
    #[error("too large: {0} took all of the memory that a solver may take")]
    OutOfMemory(String),
    /// It could not be started, or crashed.
    #[error("{0}")]
    Broken(String),
}

/// The result of deciding a claim.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It holds for all objects; with a bound, for those whose lists and maps have no more items.
    Holds {
        /// The maximum number of items covered.
        up_to: Option<usize>,
    },
    /// This request breaks it.
    Refuted(Box<Counterexample>),
    /// Neither proved nor refuted, for these reasons.
    Undecided(Vec<Undecided>),
}

/// A request that breaks a claim, as confirmed by the engine.
#[derive(Clone, Debug, PartialEq)]
pub struct Counterexample {
    /// The object in the request.
    pub object: Json,
    /// The existing object; none on creation.
    pub old_object: Option<Json>,
    /// The subresource that is written; empty for the object itself.
    pub subresource: String,
    /// The verdict of each side, the left one first.
    pub said: Vec<Said>,
}

/// The verdict of rules on a request.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Said {
    /// Whether it is denied.
    pub denied: bool,
    /// Whether an expression failed.
    pub failed: bool,
    /// The engine's messages, if it is denied or an expression failed.
    pub messages: Vec<String>,
}

/// A reason why a claim is undecided.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Undecided {
    /// What cannot be translated.
    pub what: String,
    /// The path of the field in the document, if it holds the expression.
    pub field: Option<String>,
    /// The part of the expression.
    pub span: Option<Span>,
    /// The index of the side whose document it is in: 0 for the left one.
    pub side: usize,
}

impl Undecided {
    /// Sets the part of the expression, unless a more specific one is set.
    fn at(mut self, span: Span) -> Self {
        self.span = self.span.or(Some(span));
        self
    }

    /// Removes positions in a variable's expression, which mean nothing in the expression that uses it.
    fn in_variable(mut self) -> Self {
        self.span = None;
        self
    }

    fn of(mut self, side: usize, field: &str) -> Self {
        self.side = side;
        self.field.get_or_insert_with(|| field.to_owned());
        self
    }
}

fn undecided(what: impl Into<String>) -> Undecided {
    Undecided { what: what.into(), field: None, span: None, side: 0 }
}

/// A counterexample of the solver that the engine does not confirm: one of the two is wrong.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("the solver found an object that the engine judges otherwise: {object}")]
pub struct Unconfirmed {
    /// The object.
    pub object: Json,
}
