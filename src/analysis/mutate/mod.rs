//! Measures the quality of test suites by mutation testing: rules are changed one small step at a time, and a change that no test case
//! detects shows behaviour that is not tested.
//!
//! ```text
//! document ──mutants──► Mutant ──Trial::judge──► killed by a case
//!                                     └── survived ──Survey::settle──► the case that would kill it, equivalent, undecided
//! ```
//!
//! Mutants are made from the syntax trees of expressions and from match criteria, never from text. A mutant is compiled as a server
//! does, and admit-policy alone judges it.
//!
//! INVARIANT: a surviving mutant is reported with a case that admit-policy ran under both versions: it passes with the original and
//! fails with the mutant. A survivor without such a case, and not proved equivalent, is undecided.
//!
//! | part | decides |
//! |---|---|
//! | `mutant` | what a mutant is, and how it is applied to a document |
//! | `expression` | the mutants of one expression |
//! | `matching` | the mutants of match criteria |
//! | `documents` | the mutants of one document |
//! | `world` | how far each case gets before the mutated part is evaluated |
//! | `trial` | whether a case detects a mutant |
//! | `case` | a test case in written form |
//! | `vary` | variations of existing cases |
//! | `pair` | the outcome of one case under the original and the mutant |
//! | `subject` | what the solver is asked about a mutant |
//! | `split` | whether removing a `has()` makes no difference, without a solver |
//! | `survey` | the fate of mutants that no case detects |

mod case;
mod documents;
mod expression;
mod matching;
mod mutant;
mod pair;
mod split;
mod subject;
mod survey;
mod trial;
mod vary;
mod world;

pub use case::Seed;
pub use documents::{MutateError, mutants};
pub use mutant::{Mutant, Operator};
pub use pair::Killing;
pub use survey::{Settled, Survey};
pub use trial::{Cases, Fate, Narrowed, Tally, Trial};
pub use world::World;
