//! Claims about all objects of a kind, decided by a solver: two versions of rules compared, rules that never or always
//! deny, rules that fail.
//!
//! ```text
//! rules ──eval──► terms ──script──► Solver ── unsat ──► holds
//! schema ─document─► what is assumed    └── sat ──► object ── engine agrees ──► refuted, made small
//! ```
//!
//! INVARIANT: `holds` is said only where the solver refuted the opposite over expressions that are written out exactly, and
//! over all objects that the schema allows (what is left out of the schema lets in more objects, never fewer). What cannot
//! be written out is [`Verdict::Undecided`], with the expression and the reason. A counterexample is confirmed by admit-policy
//! before it is told.
//!
//! Claims are about values. Limits of cost and of the size of a request are not part of them, nor are whole numbers that are
//! written with a fraction (`3.0`), which the server keeps apart from `3` until it stores them.
//!
//! | part | decides |
//! |---|---|
//! | `term`, `literal` | terms of SMT-LIB 2 and their text |
//! | `regular`, `sample`, `inclusion` | patterns as languages, texts that schemas allow, patterns that say less than others |
//! | `document`, `roots`, `lists`, `demands`, `complete`, `needed` | an object that may be any that a schema allows |
//! | `size` | how large a question may grow |
//! | `made` | an object as it is read with another schema |
//! | `value`, `equality`, `eval`, `calls`, `numbers` | what expressions come to |
//! | `texts`, `named`, `formats` | functions on texts, and formats |
//! | `measures`, `reader`, `readings`, `reading` | quantities, instants and durations that texts are read as |
//! | `instants`, `zones` | years, hours and other parts of instants and durations |
//! | `networks`, `parser`, `parsing` | addresses, networks and URLs that texts are taken apart into |
//! | `derived`, `found` | texts made of texts, and what is found in them |
//! | `guess`, `guesses` | what is not followed, taken for anything |
//! | `whole`, `builtin` | what every object has, whatever its schema; kinds without one |
//! | `stable` | what updates leave as it was, at times under a condition |
//! | `subject`, `subjects` | the kind that is asked about, which objects are some of it, and the kinds that a policy is about |
//! | `matched` | which requests a policy is asked about |
//! | `side` | the rules that are compared, and what the engine says of an object |
//! | `view` | how documents are seen |
//! | `rules`, `placed`, `told`, `fields` | what rules say, as terms, and the fields that they read |
//! | `model` | answers of solvers, and the objects that they mean |
//! | `shrink`, `search`, `mended` | smaller objects, objects without a solver, and objects that a server takes |
//! | `agree` | whether terms say of an object what the engine says |
//! | `question` | what may be claimed |
//! | `query`, `script` | the questions, one after another |
//! | `changes`, `refusals`, `few`, `many`, `alone`, `upgrade`, `written` | what the next version of a definition refuses anew |

mod agree;
mod alone;
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
mod upgrade;
mod value;
mod view;
mod whole;
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

/// Runs a script of SMT-LIB 2.
pub trait Solver {
    /// What the solver prints for the script, as far as it came.
    ///
    /// # Errors
    /// When it cannot be run, or broke off before it printed anything.
    fn ask(&mut self, script: &str) -> Result<String, SolverError>;

    /// The same in one of so many parts of the time that is left; those that know of no end ask as ever.
    ///
    /// # Errors
    /// The same.
    fn ask_in_part(&mut self, script: &str, parts: usize) -> Result<String, SolverError> {
        let _ = parts;
        self.ask(script)
    }
}

/// Why a solver gave no answer.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum SolverError {
    /// Its time was over.
    #[error("the solver did not answer in time")]
    TimedOut,
    /// Its memory was over.
    #[error("too large: {0} took all of the memory that a solver may take")]
    OutOfMemory(String),
    /// It could not be started, or ended by itself.
    #[error("{0}")]
    Broken(String),
}

/// What is known of a claim.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// For all objects; with a bound, for those whose lists and maps have no more items.
    Holds {
        /// The greatest number of items.
        up_to: Option<usize>,
    },
    /// Not for this one.
    Refuted(Box<Counterexample>),
    /// It is not known.
    Undecided(Vec<Undecided>),
}

/// A request that breaks a claim, which the engine confirmed.
#[derive(Clone, Debug, PartialEq)]
pub struct Counterexample {
    /// The object that is written.
    pub object: Json,
    /// What is there already; none on creation.
    pub old_object: Option<Json>,
    /// Through which it is written; empty for the object itself.
    pub subresource: String,
    /// What each side says of it, the left one first.
    pub said: Vec<Said>,
}

/// What rules say of a request.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Said {
    /// Whether it is refused.
    pub denied: bool,
    /// Whether an expression failed.
    pub failed: bool,
    /// In the words of the engine, where it is refused or an expression failed.
    pub messages: Vec<String>,
}

/// Something that is not followed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Undecided {
    /// What it is.
    pub what: String,
    /// The field of the document, where it is in an expression.
    pub field: Option<String>,
    /// The part of the expression.
    pub span: Option<Span>,
    /// Which side's document: 0 for the left one.
    pub side: usize,
}

impl Undecided {
    /// Of the part of the expression, where none within it is known.
    fn at(mut self, span: Span) -> Self {
        self.span = self.span.or(Some(span));
        self
    }

    /// Places in the expressions of variables are not places in the one that names them.
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

/// A claim that the solver refuted and the engine does not: one of both is wrong.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("the solver found an object that the engine judges otherwise: {object}")]
pub struct Unconfirmed {
    /// The object.
    pub object: Json,
}
