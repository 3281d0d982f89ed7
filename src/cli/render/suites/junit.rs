//! Renders test results as JUnit XML for CI servers such as Jenkins and GitLab. A suite that could not be run is one case with an
//! error.

use std::fmt::Write as _;
use std::time::Duration;

use admit_policy::manifest::LoadError;

use super::text::failure;
use super::{CaseReport, Report, SuiteReport};
use crate::cli::render::escaped;

pub(in crate::cli) fn junit(report: &Report) -> String {
    let summary = report.summary();
    let mut out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_owned();
    let time = seconds(report.suites.iter().map(|suite| suite.duration).sum());
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "<testsuites name=\"admit test\" tests=\"{}\" failures=\"{}\" errors=\"{}\" time=\"{time}\">",
        summary.cases + summary.errored + report.untested.len(),
        summary.failed + report.untested.len(),
        summary.errored,
    );
    report.shown().for_each(|suite| draw_suite(&mut out, suite));
    if !report.untested.is_empty() {
        draw_untested(&mut out, &report.untested);
    }
    out.push_str("</testsuites>\n");
    out
}

fn draw_suite(out: &mut String, suite: &SuiteReport) {
    let file = escaped(&suite.file);
    let errors = usize::from(suite.fault.is_some());
    let _ = writeln!(
        out,
        "  <testsuite name=\"{file}\" file=\"{file}\" tests=\"{}\" failures=\"{}\" errors=\"{errors}\" time=\"{}\">",
        suite.cases.len() + errors,
        suite.failures().count(),
        seconds(suite.duration),
    );
    if let Some(fault) = &suite.fault {
        let message = escaped(&fault.message);
        let _ = writeln!(
            out,
            "    <testcase name=\"(suite)\" classname=\"{file}\" time=\"0.000000\">\n      <error \
             type=\"suite\">{message}</error>\n    </testcase>"
        );
    }
    suite.cases.iter().for_each(|case| draw_case(out, &file, case));
    out.push_str("  </testsuite>\n");
}

/// Renders what no case reached as a suite of its own.
fn draw_untested(out: &mut String, untested: &[LoadError]) {
    let count = untested.len();
    let _ = writeln!(
        out,
        "  <testsuite name=\"(untested)\" tests=\"{count}\" failures=\"{count}\" errors=\"0\" time=\"0.000000\">"
    );
    for missing in untested {
        let (file, message) = (escaped(&missing.file), escaped(&missing.message));
        let line = missing.position.line;
        let _ = writeln!(
            out,
            "    <testcase name=\"{message}\" classname=\"{file}\" file=\"{file}\" line=\"{line}\" \
             time=\"0.000000\">\n      <failure type=\"untested\" message=\"reached by no case\"/>\n    </testcase>"
        );
    }
    out.push_str("  </testsuite>\n");
}

fn draw_case(out: &mut String, file: &str, case: &CaseReport) {
    let (name, time) = (escaped(&case.name), seconds(case.duration));
    let head = format!(
        "    <testcase name=\"{name}\" classname=\"{file}\" file=\"{file}\" line=\"{}\" time=\"{time}\"",
        case.place.line
    );
    if case.result.passed() {
        let _ = writeln!(out, "{head}/>");
        return;
    }
    let what = case.result.mismatches.first().map_or("outcome", |mismatch| mismatch.what);
    let verdict = match what {
        "outcome" => format!("expected {}, was {}", case.expected.as_str(), case.result.outcome.as_str()),
        "object" => "a server refuses the object".to_owned(),
        other => format!("{other} differs"),
    };
    let _ = writeln!(
        out,
        "{head}>\n      <failure type=\"{what}\" message=\"{verdict}\">{}</failure>\n    </testcase>",
        escaped(&failure(case)),
    );
}

fn seconds(duration: Duration) -> String {
    format!("{:.6}", duration.as_secs_f64())
}
