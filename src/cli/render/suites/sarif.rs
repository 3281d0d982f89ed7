//! Renders test results as SARIF 2.1.0 for code scanning: a result for each failing case, for each mistake in a suite
//! or what it loads, and, on request, for what no case reaches.

use admit_policy::manifest::Position;
use serde_json::Value;

use super::text::failure;
use super::{Report, SuiteReport};
use crate::cli::process::Fault;
use crate::cli::render::sarif;

pub(in crate::cli) fn sarif(report: &Report) -> String {
    let failures = report.cases().filter(|(_, case)| !case.result.passed()).map(|(suite, case)| {
        let message = format!("{}\n{}", case.name, failure(case));
        sarif::result("case-failed", "error", message.trim_end(), &suite.file, case.place)
    });
    let mistakes = report.suites.iter().filter_map(|suite| Some((suite, suite.fault.as_ref()?)));
    let untested = report
        .untested
        .iter()
        .map(|missing| sarif::result("untested", "error", &missing.message, &missing.file, missing.position));
    let results: Vec<Value> =
        mistakes.flat_map(|(suite, fault)| of_fault(suite, fault)).chain(failures).chain(untested).collect();
    let rules = [
        ("case-failed", "A declared case has another outcome than it expects."),
        ("suite-error", "A suite, or something that it loads, cannot be used."),
        ("untested", "A policy, or a definition with rules, is reached by no case."),
    ];
    sarif::document(&rules, &results)
}

fn of_fault(suite: &SuiteReport, fault: &Fault) -> Vec<Value> {
    if fault.mistakes.is_empty() {
        return vec![sarif::result("suite-error", "error", &fault.message, &suite.file, Position::default())];
    }
    let mistake = |mistake: &admit_policy::manifest::LoadError| {
        sarif::result("suite-error", "error", &mistake.to_string(), &mistake.file, mistake.position)
    };
    fault.mistakes.iter().map(mistake).collect()
}
