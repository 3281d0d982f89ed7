//! Renders test results as one JSON document.

use admit_policy::suite::Mismatch;
use serde_json::{Value, json};

use super::{CaseReport, Report, SuiteReport, Summary};
use crate::cli::render;

pub(in crate::cli) fn json(report: &Report) -> String {
    let suites: Vec<Value> = report.suites.iter().map(suite).collect();
    let Summary { cases, failed, errored } = report.summary();
    let summary = json!({"cases": cases, "passed": cases - failed, "failed": failed, "errored": errored});
    let mut document = json!({"suites": suites, "summary": summary});
    if !report.untested.is_empty() {
        let untested = report.untested.iter().map(|missing| {
            let at = missing.position;
            json!({"file": &*missing.file, "line": at.line, "column": at.column, "message": missing.message})
        });
        insert(&mut document, "untested", untested.collect());
    }
    render::json(&document)
}

fn suite(suite: &SuiteReport) -> Value {
    let cases: Vec<Value> = suite.cases.iter().map(case).collect();
    let mut object = json!({"file": suite.file, "cases": cases});
    if let Some(fault) = &suite.fault {
        insert(&mut object, "error", json!(fault.message));
    }
    object
}

fn case(case: &CaseReport) -> Value {
    let mut object = json!({
        "name": case.name,
        "outcome": case.result.outcome.as_str(),
        "expected": case.expected.as_str(),
        "passed": case.result.passed(),
        "message": case.result.message,
        "field": case.result.field,
        "duration_us": u64::try_from(case.duration.as_micros()).unwrap_or(u64::MAX),
    });
    if !case.result.passed() {
        let differences = case.result.mismatches.iter().map(|Mismatch { what, expected, actual }| {
            json!({"what": what, "expected": expected, "actual": actual})
        });
        insert(&mut object, "differences", differences.collect());
    }
    object
}

fn insert(object: &mut Value, key: &str, value: Value) {
    if let Value::Object(fields) = object {
        fields.insert(key.to_owned(), value);
    }
}
