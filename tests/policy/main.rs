//! Tests of the admit-policy package; one program, a module per subject.

mod deciding;
mod loading;
mod matching;
mod review;
mod shipped;
mod suites;
mod support;
