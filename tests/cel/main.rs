//! Tests of the admit-cel package; one program, a module per subject.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should say where and stop")]

mod api;
mod checker;
mod compile_errors;
mod corpora;
mod documents;
mod explain;
mod generated;
mod hostile;
mod language;
mod library;
mod limits;
mod properties;
mod syntax;
mod typed;
mod versions;
mod walks;
