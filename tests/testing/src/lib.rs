//! What tests of every package share: recorded answers of the reference, how a test that cannot run says so, free ports,
//! the text of a public API, and definitions of kinds.

pub mod api;
mod definitions;
mod ports;
mod recorded;
mod skipped;

pub use definitions::{definition, definition_text, shops};
pub use ports::free_port;
pub use recorded::{Corpus, FOREIGN, corpora, corpus, recorded_text};
pub use skipped::{Need, skip};
