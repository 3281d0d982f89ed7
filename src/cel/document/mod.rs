//! Holds documents that values borrow: JSON text decoded once into an arena, or a `serde_json::Value` used in place.
//!
//! Numbers are decoded as in Kubernetes (`sigs.k8s.io/json`): an integer literal that fits 64 bits is an integer, anything else a
//! double. The declared type of a document is not known here.

mod convert;
mod error;
mod node;
mod read;
mod scan;

pub use error::{ReadError, ReadErrorKind};
pub use node::{Entries, Key, ListNode, MapNode, Node};
pub use read::{DuplicateKeys, ReadLimits, parse};
