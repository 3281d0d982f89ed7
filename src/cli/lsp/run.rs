//! Runs a case of a suite for the editor.

use std::path::Path;

use admit_apiserver::OfflinePlugins;
use admit_policy::{ExpressionId, Keep, Recorded, Recording};

use crate::cli::process::Fault;
use crate::cli::suite;

/// The result of a case.
pub(super) struct Ran {
    pub(super) passed: bool,
    /// The outcome of the request.
    pub(super) outcome: &'static str,
    /// The result for people.
    pub(super) told: String,
    /// The recorded evaluations.
    pub(super) recorded: Vec<(ExpressionId, Recorded)>,
}

/// Runs the case with that name in a saved suite.
pub(super) fn case(suite: &str, name: &str) -> Result<Ran, Fault> {
    let recording = Recording::new(Keep::TRACES);
    let report = suite::one((Path::new(suite), Some(name)), None, OfflinePlugins::default(), &recording)?;
    let result = &report.result;
    let passed = result.passed();
    let verdict = if passed { "PASS" } else { "FAIL" };
    let mut told = format!("{verdict}: {name}: {}", result.outcome.as_str());
    if !passed {
        told += &format!(", expected {}", report.expected.as_str());
    }
    if !result.message.is_empty() {
        told += &format!(": {}", result.message);
    }
    Ok(Ran {
        passed,
        outcome: result.outcome.as_str(),
        told,
        recorded: recording.finish().into_iter().collect(),
    })
}
