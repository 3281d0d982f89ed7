//! Tests of the admit-analysis package; one program, a module per subject.
#![expect(clippy::expect_used, clippy::panic, reason = "a test that cannot go on should say where and stop")]

mod api;
mod attack;
mod boundaries;
mod breakages;
mod costs;
mod mutate;
mod mutate_said;
mod mutate_shipped;
mod offers;
mod page;
mod prove;
mod replay;
mod rows;
mod states;
