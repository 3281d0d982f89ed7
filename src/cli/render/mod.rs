//! Drawings of results and diagnostics for people and machines. Decides nothing.

pub(super) mod suites;
