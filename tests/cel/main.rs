//! Tests of the admit-cel package; one program, a module per subject.

mod checker;
mod compile_errors;
mod corpora;
mod documents;
mod explain;
mod library;
mod limits;
mod syntax;
mod typed;
