//! Tests of the admit-apimachinery package that ask of more than one of its modules; one program, a module per subject.
#![expect(clippy::expect_used, clippy::panic, reason = "a test that cannot go on should say where and stop")]

mod layout;
mod reread;
mod yaml;
