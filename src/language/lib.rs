//! Answers editors' requests about CEL in Kubernetes manifests. Documents in, answers out: no I/O, and no protocol.
//!
//! ```text
//! changes ──Workspace──► File: the text, and the documents of the last text that was YAML
//!                           │
//!   place ──site──► expression with what it may name ──┬─ hover · complete · navigate
//!                           │                          └─ origin: the schema that a part comes from
//!                           └─ lint ──► what `admit lint` says, where it stands
//! ```
//!
//! | module | decides | may use |
//! |---|---|---|
//! | `text` | lines, columns and edits of texts | nothing of ours |
//! | [`lint`] | what `admit lint` reports on files, and at which token | text |
//! | `fix` | the edit that corrects a mistake | text |
//! | `file` | what is known of a file while its text is invalid | lint, text |
//! | `cases` | the test cases of suites, and the values of a run | file |
//! | `symbols` | the outline of a file, and what can be folded | file |
//! | `known` | which kinds files define, and which are built in | nothing of ours |
//! | `site` | which expression is at a position, and which names it may use | file, known, text |
//! | `origin` | which schema node a part of an expression refers to | file, site |
//! | `recover` | an unfinished expression, closed at the cursor | nothing of ours |
//! | `functions` | signatures of functions, and their descriptions | nothing of ours |
//! | `hover` | the description of what is at a position | functions, origin, site |
//! | `complete` | the completions at a position | functions, origin, recover, site |
//! | `navigate` | where a name is defined, and where it is used | file, origin, recover, site, text |
//! | `answer` | the types of answers | symbols, text |
//! | `workspace` | all files, and the answers about them | answer, cases, complete, file, fix, hover, known, lint, navigate, origin, site, symbols, text |
#![deny(missing_docs)]
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

mod answer;
mod cases;
mod complete;
mod file;
mod fix;
mod functions;
mod hover;
mod known;
pub mod lint;
mod navigate;
mod origin;
mod recover;
mod site;
mod symbols;
mod text;
mod workspace;

pub use self::answer::{Edit, Fix, Hover, Location, Mistake, Symbol};
pub use self::complete::{Item, ItemKind};
pub use self::navigate::RenameError;
pub use self::symbols::SymbolKind;
pub use self::text::{Encoding, Place, Text, Texts};
pub use self::workspace::Workspace;

/// The examples of the readme.
#[cfg(doctest)]
#[doc = include_str!("README.md")]
struct Readme;
