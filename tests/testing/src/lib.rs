//! What tests of every package share: recorded answers of the reference, how a test that cannot run says so, free ports,
//! the text of a public API, and a definition.

pub mod api;
mod ports;
mod recorded;
mod shops;
mod skipped;

pub use ports::free_port;
pub use recorded::{Corpus, FOREIGN, corpora, corpus, recorded_text};
pub use shops::shops;
pub use skipped::{Need, skip};
