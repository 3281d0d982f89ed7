//! Patch formats that need the schema of the patched kind. JSON patch and JSON merge patch need none and are in the
//! registry.

pub mod applied;
mod order;
pub(crate) mod shown;
pub mod strategic;
pub(crate) mod touched;
