//! Patch formats that need the schema of the patched kind. JSON patch needs none and is in the registry,
//! and JSON merge patch, which needs none either.

pub(crate) mod applied;
pub(crate) mod merge;
pub(crate) mod merge_key;
mod order;
pub(crate) mod shown;
pub(crate) mod strategic;
pub(crate) mod touched;
