//! Prepares suites and runs their cases, both in parallel, several suites at a time, and reports in order.

use std::time::{Duration, Instant};

use super::case::PreparedCase;
use super::discover::Source;
use super::parallel::{self, ordered};
use super::prepare::{Prepared, SuiteLoader};
use crate::cli::Exit;
use crate::cli::progress::Progress;
use crate::cli::render::suites::{CaseReport, Report, SuiteReport};

/// Suites per processor that are in memory at a time, with all that they test. Those of the previous wave stay as well.
const WAVE: usize = 2;

/// Runs the cases of `sources`; with `fail_fast` up to the first that fails.
pub(super) fn run(loader: &SuiteLoader, sources: &[Source], fail_fast: bool) -> Report {
    let mut suites = Vec::with_capacity(sources.len());
    // What a wave tests is kept until the next one is prepared, because neighbouring suites often test the same.
    let mut kept: Vec<PreparedCase> = Vec::new();
    let progress = Progress::of(Some(sources.len()), "testing");
    for wave in sources.chunks(WAVE * parallel::workers()) {
        let (reports, used) = run_wave(loader, wave, fail_fast);
        wave.iter().for_each(|_| progress.step());
        drop(std::mem::replace(&mut kept, used));
        let failed = reports.iter().any(|report| report.exit() != Exit::Expected);
        suites.extend(reports);
        if fail_fast && failed {
            break;
        }
    }
    Report { suites, untested: Vec::new() }
}

fn run_wave(
    loader: &SuiteLoader,
    sources: &[Source],
    fail_fast: bool,
) -> (Vec<SuiteReport>, Vec<PreparedCase>) {
    let prepare = |index: usize| {
        let start = Instant::now();
        let source = sources.get(index).map(|source| (source.file.as_str(), loader.prepare(source)));
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
    let prepared: Vec<(SuiteReport, Vec<PreparedCase>)> =
        ordered(sources.len(), prepare, |(report, _)| fail_fast && report.fault.is_some());
    let due: Vec<usize> = prepared.iter().map(|(_, cases)| cases.len()).collect();
    let (reports, cases): (Vec<SuiteReport>, Vec<Vec<PreparedCase>>) = prepared.into_iter().unzip();
    let cases: Vec<PreparedCase> = cases.into_iter().flatten().collect();
    let results = ordered(
        cases.len(),
        |index| cases.get(index).map(|case| case.run(loader.ledger())),
        |result| fail_fast && result.as_ref().is_some_and(|result| !result.result.passed()),
    );
    let stopped = results.len() < cases.len();
    (assemble(reports.into_iter().zip(due), results.into_iter().flatten(), stopped), cases)
}

/// Assembles the results of each suite; if the run `stopped`, up to the suite where it did.
fn assemble(
    prepared: impl Iterator<Item = (SuiteReport, usize)>,
    mut results: impl Iterator<Item = CaseReport>,
    stopped: bool,
) -> Vec<SuiteReport> {
    let mut suites = Vec::new();
    for (mut report, due) in prepared {
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
