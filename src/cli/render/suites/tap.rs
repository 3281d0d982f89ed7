//! Renders test results in the Test Anything Protocol, version 14. A suite that could not be run is one failing test,
//! and so is, on request, what no case reaches.

use std::fmt::Write as _;

use admit_apimachinery::yaml;
use serde_json::{Map, Value};

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
    // A hash would start a directive, and a line feed the next line.
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

/// Renders a YAML block. The message ends with a line feed, so that it becomes a literal block scalar.
fn block(out: &mut String, pairs: &[(&str, &str)], message: &str) {
    let message = format!("{}\n", message.trim_end());
    let fields = pairs.iter().copied().chain([("message", message.as_str())]);
    let fields: Map<String, Value> = fields.map(|(key, text)| (key.to_owned(), text.into())).collect();
    out.push_str("  ---\n");
    for line in yaml::write(&Value::Object(fields)).lines() {
        let _ = writeln!(out, "  {line}");
    }
    out.push_str("  ...\n");
}
