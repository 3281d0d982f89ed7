//! Tests of the admit-language package; one program, a module per subject.
#![expect(clippy::expect_used, clippy::panic, reason = "a test that cannot go on should say where and stop")]

mod again;
mod answers;
mod api;
mod edits;
mod outline;
mod places;
mod repositories;
mod support;
mod values;
