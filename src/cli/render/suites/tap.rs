//! Renders test results in the Test Anything Protocol, version 14. A suite that could not be run is one failing test,
//! and so is, on request, what no case reaches.

use std::fmt::Write as _;

use super::text::failure;
use super::{CaseReport, Report};

pub(in crate::cli) fn tap(report: &Report) -> String {
    let summary = report.summary();
    let tests = summary.cases + summary.errored + report.untested.len();
    let mut out = format!("TAP version 14\n1..{tests}\n");
    let mut number = 0;
    for suite in &report.suites {
        if let Some(fault) = &suite.fault {
            number += 1;
            point(&mut out, false, number, &suite.file);
            block(&mut out, &[], &fault.message);
        }
        for case in &suite.cases {
            number += 1;
            point(&mut out, case.result.passed(), number, &format!("{}: {}", suite.file, case.name));
            if !case.result.passed() {
                details(&mut out, &suite.file, case);
            }
        }
    }
    for missing in &report.untested {
        number += 1;
        point(&mut out, false, number, &missing.file);
        block(&mut out, &[], &missing.to_string());
    }
    out
}

fn point(out: &mut String, passed: bool, number: usize, description: &str) {
    // A hash would begin a directive, and a line feed the next line.
    let description = description.replace('\\', "\\\\").replace('#', "\\#").replace('\n', " ");
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{}ok {number} - {description}", if passed { "" } else { "not " });
}

fn details(out: &mut String, file: &str, case: &CaseReport) {
    let at = format!("{file}:{}:{}", case.place.line, case.place.column);
    let pairs =
        [("at", at.as_str()), ("expected", case.expected.as_str()), ("actual", case.result.outcome.as_str())];
    block(out, &pairs, &failure(case));
}

/// A YAML block: scalars in quotes, the message as a literal.
fn block(out: &mut String, pairs: &[(&str, &str)], message: &str) {
    out.push_str("  ---\n");
    for (key, value) in pairs {
        let _ = writeln!(out, "  {key}: '{}'", value.replace('\'', "''"));
    }
    out.push_str("  message: |-\n");
    for line in message.lines() {
        let _ = writeln!(out, "    {line}");
    }
    out.push_str("  ...\n");
}
