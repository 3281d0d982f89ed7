//! Gathers what the remote configuration requests: log lines are gathered; conditional rules are only reported.

mod lines;
pub(super) mod logs;
pub(super) mod rules;
