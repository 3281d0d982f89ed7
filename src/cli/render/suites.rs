//! Results of test suites: as text like `go test`, or as one JSON document.

use std::fmt::Write as _;
use std::time::Duration;

use admit_policy::suite::{CaseResult, Mismatch, Outcome};
use serde_json::{Value, json};

use super::{Palette, counted};
use crate::cli::Exit;
use crate::cli::process::Fault;

/// What came of all suites, in order.
#[derive(Debug)]
pub(in crate::cli) struct Report {
    pub(in crate::cli) suites: Vec<SuiteReport>,
}

/// What came of one suite.
#[derive(Debug)]
pub(in crate::cli) struct SuiteReport {
    file: String,
    pub(in crate::cli) cases: Vec<CaseReport>,
    /// Why the suite could not be run.
    pub(in crate::cli) fault: Option<Fault>,
    pub(in crate::cli) duration: Duration,
}

/// What came of one case.
#[derive(Debug)]
pub(in crate::cli) struct CaseReport {
    pub(in crate::cli) name: String,
    pub(in crate::cli) expected: Outcome,
    pub(in crate::cli) result: CaseResult,
    pub(in crate::cli) duration: Duration,
}

impl Report {
    /// The weightiest of all suites' exits.
    pub(in crate::cli) fn exit(&self) -> Exit {
        self.suites.iter().map(SuiteReport::exit).max().unwrap_or(Exit::Expected)
    }

    /// Whether nothing was run, and nothing went wrong.
    pub(in crate::cli) fn is_empty(&self) -> bool {
        self.suites.iter().all(|suite| suite.cases.is_empty() && suite.fault.is_none())
    }

    fn cases(&self) -> impl Iterator<Item = &CaseReport> {
        self.suites.iter().flat_map(|suite| &suite.cases)
    }
}

impl SuiteReport {
    pub(in crate::cli) fn new(file: &str) -> Self {
        Self { file: file.to_owned(), cases: Vec::new(), fault: None, duration: Duration::ZERO }
    }

    pub(in crate::cli) fn failed(self, fault: Fault) -> Self {
        Self { fault: Some(fault), ..self }
    }

    pub(in crate::cli) fn exit(&self) -> Exit {
        match &self.fault {
            Some(fault) => fault.exit,
            None if self.cases.iter().all(|case| case.result.passed()) => Exit::Expected,
            None => Exit::Differs,
        }
    }
}

/// One line a suite, more for cases that fail, and the sums.
pub(in crate::cli) fn text(report: &Report, verbose: bool, palette: Palette) -> String {
    let mut out = String::new();
    let shown = || report.suites.iter().filter(|suite| suite.fault.is_some() || !suite.cases.is_empty());
    for suite in shown() {
        draw_suite(&mut out, suite, verbose, palette);
    }
    let (cases, failed) = (report.cases().count(), failed(report));
    let unrun = report.suites.iter().filter(|suite| suite.fault.is_some()).count();
    let suites = shown().count() - unrun;
    if failed == 0 && unrun == 0 {
        line(&mut out, &format!("PASS: {} in {}", counted(cases, "case"), counted(suites, "suite")));
        return out;
    }
    let mut sums =
        format!("FAIL: {failed} of {} failed in {}", counted(cases, "case"), counted(suites, "suite"));
    if unrun > 0 {
        let _ = write!(sums, "; {} could not be run", counted(unrun, "suite"));
    }
    line(&mut out, &sums);
    out
}

/// One document; its schema is part of the command's contract.
pub(in crate::cli) fn json(report: &Report) -> String {
    let suites: Vec<Value> = report.suites.iter().map(suite_json).collect();
    let errored = report.suites.iter().filter(|suite| suite.fault.is_some()).count();
    let (cases, failed) = (report.cases().count(), failed(report));
    let summary = json!({"cases": cases, "passed": cases - failed, "failed": failed, "errored": errored});
    super::json(&json!({"suites": suites, "summary": summary}))
}

fn failed(report: &Report) -> usize {
    report.cases().filter(|case| !case.result.passed()).count()
}

fn suite_json(suite: &SuiteReport) -> Value {
    let cases: Vec<Value> = suite
        .cases
        .iter()
        .map(|case| {
            json!({
                "name": case.name,
                "outcome": case.result.outcome.as_str(),
                "expected": case.expected.as_str(),
                "passed": case.result.passed(),
                "message": case.result.message,
                "field": case.result.field,
                "duration_us": u64::try_from(case.duration.as_micros()).unwrap_or(u64::MAX),
            })
        })
        .collect();
    let mut object = json!({"file": suite.file, "cases": cases});
    if let (Value::Object(fields), Some(fault)) = (&mut object, &suite.fault) {
        fields.insert("error".to_owned(), json!(fault.message));
    }
    object
}

fn draw_suite(out: &mut String, suite: &SuiteReport, verbose: bool, palette: Palette) {
    let word = match (&suite.fault, suite.exit()) {
        (Some(_), _) => palette.red("ERROR"),
        (None, Exit::Expected) => palette.green("ok   "),
        (None, _) => palette.red("FAIL "),
    };
    let took = format!("{:.1} ms", suite.duration.as_secs_f64() * 1000.0);
    match suite.fault {
        Some(_) => line(out, &format!("{word} {}", suite.file)),
        None => line(out, &format!("{word} {}  {}  {took}", suite.file, counted(suite.cases.len(), "case"))),
    }
    for case in &suite.cases {
        if !case.result.passed() {
            line(out, &format!("    --- FAIL: {}", case.name));
            draw_failure(out, case);
        } else if verbose {
            line(out, &format!("    --- PASS: {} ({})", case.name, case.result.outcome.as_str()));
        }
    }
}

fn draw_failure(out: &mut String, case: &CaseReport) {
    if !case.result.field.is_empty() {
        line(out, &format!("        at {}", case.result.field));
    }
    for Mismatch { what, expected, actual } in &case.result.mismatches {
        line(out, &format!("        {what}:"));
        prefixed(out, "          - ", expected);
        prefixed(out, "          + ", actual);
    }
    // A wrong outcome alone does not say what the rule said.
    let told = case.result.mismatches.iter().any(|mismatch| mismatch.what == "message");
    if !told && !case.result.message.is_empty() {
        prefixed(out, "        said: ", &case.result.message);
    }
}

fn prefixed(out: &mut String, prefix: &str, text: &str) {
    if text.is_empty() {
        line(out, &format!("{prefix}(nothing)"));
    }
    for part in text.lines() {
        line(out, &format!("{prefix}{part}"));
    }
}

fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}
