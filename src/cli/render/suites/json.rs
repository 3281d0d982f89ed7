//! For programs: one document.

use serde_json::{Value, json};

use super::{CaseReport, Report, SuiteReport, Summary};
use crate::cli::render;

pub(in crate::cli) fn json(report: &Report) -> String {
    let suites: Vec<Value> = report.suites.iter().map(suite).collect();
    let Summary { cases, failed, errored } = report.summary();
    let summary = json!({"cases": cases, "passed": cases - failed, "failed": failed, "errored": errored});
    render::json(&json!({"suites": suites, "summary": summary}))
}

fn suite(suite: &SuiteReport) -> Value {
    let cases: Vec<Value> = suite.cases.iter().map(case).collect();
    let mut object = json!({"file": suite.file, "cases": cases});
    if let (Value::Object(fields), Some(fault)) = (&mut object, &suite.fault) {
        fields.insert("error".to_owned(), json!(fault.message));
    }
    object
}

fn case(case: &CaseReport) -> Value {
    json!({
        "name": case.name,
        "outcome": case.result.outcome.as_str(),
        "expected": case.expected.as_str(),
        "passed": case.result.passed(),
        "message": case.result.message,
        "field": case.result.field,
        "duration_us": u64::try_from(case.duration.as_micros()).unwrap_or(u64::MAX),
    })
}
