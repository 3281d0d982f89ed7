//! What tests of every package share: recorded answers of the reference, and how a test that cannot run says so.

mod recorded;
mod skipped;

pub use recorded::{Corpus, FOREIGN, corpora, corpus};
pub use skipped::{Need, skip};
