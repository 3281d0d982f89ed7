//! Renders test results for GitHub Actions: an annotation for each failing case and each mistake, and totals for the
//! log.

use admit_policy::manifest::Position;

use super::Report;
use super::text::{failure, last_line};
use crate::cli::render::github;

pub(in crate::cli) fn github(report: &Report) -> String {
    let mut out = String::new();
    for suite in &report.suites {
        if let Some(fault) = &suite.fault {
            if fault.mistakes.is_empty() {
                annotate(&mut out, &suite.file, Position::default(), "suite", &fault.message);
            }
            for mistake in &fault.mistakes {
                annotate(&mut out, &mistake.file, mistake.position, "suite", &mistake.to_string());
            }
        }
        for case in suite.failures() {
            annotate(&mut out, &suite.file, case.place, &case.name, failure(case).trim_end());
        }
    }
    for missing in &report.untested {
        annotate(&mut out, &missing.file, missing.position, "untested", &missing.message);
    }
    out.push_str(&last_line(report));
    out.push('\n');
    out
}

fn annotate(out: &mut String, file: &str, at: Position, title: &str, message: &str) {
    github::annotate(out, "error", github::Place { file, at, title }, message);
}
