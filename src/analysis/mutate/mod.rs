//! Whether tests are any good: rules are changed one small thing at a time, and a change that no case of any suite sees is
//! something that nobody tests.
//!
//! ```text
//! document ──mutants──► Mutant ──Trial::judge──► killed by a case
//!                                     └── survived ──Survey::settle──► the case that would kill it, equivalent, undecided
//! ```
//!
//! Changes are made to the trees of expressions and to the fields that say what is matched, never to text; what comes of them
//! is compiled as a server does, and judged by admit-policy alone.
//!
//! INVARIANT: a survivor is told with a case that admit-policy ran under both: it passes as the rules are, and fails with the
//! change. One for which none is found, and that is not proved to be the same, is undecided.
//!
//! | part | decides |
//! |---|---|
//! | `mutant` | what a change is, and how it is made to a document |
//! | `expression` | the changes to one expression |
//! | `matching` | the changes to what is matched |
//! | `documents` | the changes to one document |
//! | `world` | how far cases come before what is changed has its say |
//! | `trial` | what cases say of a change |
//! | `case` | a test case as it is written |
//! | `vary` | cases a little beside those that there are |
//! | `pair` | what one case comes to, as the rules are and with a change |
//! | `subject` | what a question about a change is about |
//! | `split` | whether a test that is left out makes no difference, without a solver |
//! | `survey` | what becomes of changes that no case saw |

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
