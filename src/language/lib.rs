//! What an editor asks about CEL in Kubernetes manifests. Documents in, answers out: no I/O, and no protocol.
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
//! | `text` | lines, columns and changes of texts | nothing of ours |
//! | [`lint`] | what `admit lint` says of files, and of which token | text |
//! | `fix` | what to write in the place of a mistake | text |
//! | `file` | what is known of a file while it is broken | lint, text |
//! | `cases` | the cases of suites, and what a run made of expressions | file |
//! | `symbols` | what a file consists of, and what of it can be folded | file |
//! | `known` | which kinds files define, and which are built in | nothing of ours |
//! | `site` | which expression stands at a place, and what it may name | file, known, text |
//! | `origin` | which place of a schema a part of an expression comes from | file, site |
//! | `recover` | an expression up to the cursor, closed | nothing of ours |
//! | `functions` | signatures of functions, and how they are told | nothing of ours |
//! | `hover` | what is told of what stands at a place | functions, origin, site |
//! | `complete` | what may be written at a place | functions, origin, recover, site |
//! | `navigate` | where a name is defined, and where it is used | file, origin, recover, site, text |
//! | `answer` | what is answered | symbols, text |
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
