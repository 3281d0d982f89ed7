//! Provides what the tests of all packages share: recorded answers of the reference, reports of skipped tests, free ports,
//! the public API as text, and definitions of kinds.

pub mod api;
mod definitions;
mod ports;
mod recorded;
mod skipped;

pub use definitions::{definition, definition_text, shops};
pub use ports::free_port;
pub use recorded::{Corpus, FOREIGN, corpora, corpus, recorded_text};
pub use skipped::{Need, skip};
