//! Implements strategic merge patch, which needs the schema of the patched kind, and JSON merge patch. JSON patch is
//! in the registry.

pub(crate) mod applied;
pub(crate) mod merge;
pub(crate) mod merge_key;
mod order;
pub(crate) mod strategic;
pub(crate) mod touched;
