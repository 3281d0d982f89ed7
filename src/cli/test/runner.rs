//! Prepares all suites, then runs all their cases, both on all processors; reports in order.

use std::time::{Duration, Instant};

use super::discover::Source;
use super::parallel::ordered;
use super::prepare::{Prepared, Workshop};
use super::ready::Ready;
use crate::cli::render::suites::{CaseReport, Report, SuiteReport};

/// Runs the cases of `sources`; with `fail_fast` up to the first that fails.
pub(super) fn run(workshop: &Workshop, sources: &[Source], fail_fast: bool) -> Report {
    let prepare = |index: usize| {
        let start = Instant::now();
        let source = sources.get(index).map(|source| (source.file.as_str(), workshop.prepare(source)));
        let (file, prepared) = source.unwrap_or(("", Ok(Prepared::default())));
        let mut report = SuiteReport::new(file);
        let Prepared { cases, warnings } = prepared.unwrap_or_else(|fault| {
            report.fault = Some(fault);
            Prepared::default()
        });
        report.warnings = warnings;
        report.duration = start.elapsed();
        (report, cases)
    };
    let prepared: Vec<(SuiteReport, Vec<Ready>)> =
        ordered(sources.len(), prepare, |(report, _)| fail_fast && report.fault.is_some());
    let cases: Vec<&Ready> = prepared.iter().flat_map(|(_, cases)| cases).collect();
    let results = ordered(
        cases.len(),
        |index| cases.get(index).map(|case| case.run(workshop.ledger())),
        |result| fail_fast && result.as_ref().is_some_and(|result| !result.result.passed()),
    );
    let stopped = results.len() < cases.len();
    Report { suites: assemble(prepared, results.into_iter().flatten(), stopped), untested: Vec::new() }
}

/// Each suite with its results; when the run `stopped`, nothing after the suite in which it did.
fn assemble(
    prepared: Vec<(SuiteReport, Vec<Ready>)>,
    mut results: impl Iterator<Item = CaseReport>,
    stopped: bool,
) -> Vec<SuiteReport> {
    let mut suites = Vec::with_capacity(prepared.len());
    for (mut report, cases) in prepared {
        let due = cases.len();
        report.cases = results.by_ref().take(due).collect();
        report.duration += report.cases.iter().map(|case| case.duration).sum::<Duration>();
        let cut = report.cases.len() < due;
        if stopped && cut && report.cases.is_empty() {
            break;
        }
        suites.push(report);
        if cut {
            break;
        }
    }
    suites
}
