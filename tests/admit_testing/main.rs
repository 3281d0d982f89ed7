//! Tests of the admit-testing package: clusters in process, their forks, and the way to them from outside.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where and stop")]

mod api;
mod forks;
mod outside;
mod warmed;
