//! Tests of the admit-policy package; one program, a module per subject.

mod custom_resources;
mod deciding;
mod field_errors;
mod loading;
mod matching;
mod review;
mod schemas;
mod shipped;
mod suites;
mod support;
