//! For code scanning: SARIF 2.1.0, a result for each case that fails and for each mistake in a suite or what it loads.

use admit_policy::manifest::Position;
use serde_json::{Value, json};

use super::text::failure;
use super::{Report, SuiteReport};
use crate::cli::process::Fault;
use crate::cli::render;

pub(in crate::cli) fn sarif(report: &Report) -> String {
    let failures = report.cases().filter(|(_, case)| !case.result.passed()).map(|(suite, case)| {
        let message = format!("{}\n{}", case.name, failure(case));
        result("case-failed", message.trim_end(), &suite.file, case.place)
    });
    let mistakes = report.suites.iter().filter_map(|suite| Some((suite, suite.fault.as_ref()?)));
    let results: Vec<Value> =
        mistakes.flat_map(|(suite, fault)| of_fault(suite, fault)).chain(failures).collect();
    let rule = |id: &str, text: &str| json!({"id": id, "shortDescription": {"text": text}});
    let driver = json!({
        "name": "admit",
        "version": env!("CARGO_PKG_VERSION"),
        "rules": [
            rule("case-failed", "A declared case has another outcome than it expects."),
            rule("suite-error", "A suite, or something that it loads, cannot be used."),
        ],
    });
    render::json(&json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }))
}

fn of_fault(suite: &SuiteReport, fault: &Fault) -> Vec<Value> {
    if fault.mistakes.is_empty() {
        return vec![result("suite-error", &fault.message, &suite.file, Position::default())];
    }
    let mistake = |mistake: &admit_policy::manifest::LoadError| {
        result("suite-error", &mistake.to_string(), &mistake.file, mistake.position)
    };
    fault.mistakes.iter().map(mistake).collect()
}

fn result(rule: &str, message: &str, file: &str, place: Position) -> Value {
    // SARIF wants relative references without a leading `./`.
    let uri = file.strip_prefix("./").unwrap_or(file);
    json!({
        "ruleId": rule,
        "level": "error",
        "message": {"text": message},
        "locations": [{
            "physicalLocation": {
                "artifactLocation": {"uri": uri},
                "region": {"startLine": place.line, "startColumn": place.column},
            },
        }],
    })
}
