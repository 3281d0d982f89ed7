//! Patch formats that need the schema of the patched kind. JSON patch and JSON merge patch need none and are in the
//! registry.

pub(crate) mod applied;
pub(crate) mod merge_key;
mod order;
pub(crate) mod shown;
pub(crate) mod strategic;
pub(crate) mod touched;
