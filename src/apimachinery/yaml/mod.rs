//! Reads and writes YAML as Kubernetes does (sigs.k8s.io/yaml over go-yaml 2); all parts of the program use it.
//!
//! ```text
//! text ──events──► source ──builder──► Tree { value, positions }      scalars as Go resolves them, aliases within a budget
//!            │                  └────► pieces: documents, and items of lists, one by one
//!            └──ahead: what a list says of itself behind its items
//! text, changed ──reread──► what of the tree and the layout has changed
//! text ──layout──► where each key and value begins and ends; written: what of a scalar's text stands where
//! value ──write──► text                                               quotes where `scalar` reads anything but the text
//! ```
//!
//! JSON is read as YAML, which it is a subset of. Callers read files, and interpret documents.

mod ahead;
mod builder;
mod change;
mod escapes;
mod events;
mod layout;
mod map;
mod position;
mod reread;
mod scalar;
mod source;
mod tree;
mod write;
mod written;

pub use self::ahead::ListOf;
pub use self::change::Change;
pub use self::escapes::unread_escape;
pub use self::layout::{Layout, Spot, SpotId, Step};
pub use self::position::{Position, Positions};
pub use self::reread::Reread;
pub use self::source::{Piece, parse, parse_first, parse_placed, parse_values, pieces};
pub use self::tree::{Duplicate, Tree, YamlError};
pub use self::write::{write, write_sorted};
pub use self::written::{Style, Written};
