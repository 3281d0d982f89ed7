//! Documents: JSON text, or a `serde_json::Value`, decoded once into an arena that values borrow.
//!
//! Numbers are decoded as Kubernetes does (`sigs.k8s.io/json`): an integer literal that fits 64 bits is an integer,
//! anything else a double. What a document means (its declared type) is not known here.

mod convert;
mod node;
mod read;
mod scan;

pub use node::{Key, MapNode, Node};
pub use read::{DuplicateKeys, ReadError, ReadErrorKind, ReadLimits, parse};
