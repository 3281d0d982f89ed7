//! Renders the result of `admit eval`: the value of one expression.

use std::fmt::Write as _;

use admit_analysis::releases::Release;
use admit_analysis::releases::facts::Unknown;
use admit_policy::{AdhocError, Answer};
use serde_json::{Value, json};

use super::releases;

/// What releases that agree answer; none where there was no time to ask them.
pub(in crate::cli) type ByRelease = (Vec<Release>, Option<Result<Answer, AdhocError>>);

/// Value, type and cost, a line each; the value of several lines where it is large.
pub(in crate::cli) fn text(answer: &Answer) -> String {
    let value = answer.json.as_ref().map_or_else(|| answer.text.clone(), |json| format!("{json:#}"));
    format!("{value}\ntype: {}\ncost: {}\n", kind(answer), answer.cost)
}

/// `{"value", "type", "cost"}`, or `{"error": {"phase", "message"}}`. A value that JSON cannot hold is null, with its
/// text beside it.
pub(in crate::cli) fn json(outcome: &Result<Answer, AdhocError>) -> String {
    super::json(&value(outcome))
}

/// As [`json`] writes it.
pub(in crate::cli) fn value(outcome: &Result<Answer, AdhocError>) -> Value {
    match outcome {
        Ok(answer) => {
            let mut document = json!({"value": answer.json, "type": kind(answer), "cost": answer.cost});
            if let (Value::Object(fields), None) = (&mut document, &answer.json) {
                fields.insert("text".to_owned(), json!(answer.text));
            }
            document
        }
        Err(error) => {
            let (phase, cost) = match error {
                AdhocError::Compile(_) => ("compile", None),
                AdhocError::Program(_) => ("program", None),
                AdhocError::Evaluation { cost, .. } => ("evaluation", Some(cost)),
            };
            json!({"error": {"phase": phase, "message": error.to_string(), "cost": cost}})
        }
    }
}

/// An outcome as [`json`] writes it; null where there was no time for one.
pub(in crate::cli) fn outcome(outcome: &Option<Result<Answer, AdhocError>>) -> Value {
    outcome.as_ref().map(value).unwrap_or_default()
}

/// Of releases that agree, a block each.
pub(in crate::cli) fn text_by_release(answers: &[ByRelease], late: &str, unknown: &[&Unknown]) -> String {
    let mut out = String::new();
    for (releases, outcome) in answers {
        let told = match outcome {
            Some(Ok(answer)) => text(answer),
            Some(Err(AdhocError::Compile(error))) => format!("does not compile\n{error}\n"),
            Some(Err(error)) => format!("{error}\n"),
            None => format!("undecided: {late}\n"),
        };
        let _ = write!(out, "{}: {told}", releases::told(releases));
    }
    out.push_str(&releases::unknown_text(unknown, false));
    out
}

/// `{"releases": [{"releases": […], "outcome"}], "unknown": […]}`, each outcome as [`json`] writes it, and null where there was no time for it.
pub(in crate::cli) fn json_by_release(answers: &[ByRelease], unknown: &[&Unknown]) -> String {
    let answers: Vec<Value> = answers
        .iter()
        .map(|(releases, outcome)| {
            let releases: Vec<String> = releases.iter().map(ToString::to_string).collect();
            json!({"releases": releases, "outcome": self::outcome(outcome)})
        })
        .collect();
    super::json(&json!({"releases": answers, "unknown": releases::unknown(unknown)}))
}

/// What the checker knows; where that is nothing, what came out.
fn kind(answer: &Answer) -> &str {
    if answer.declared_type == "dyn" { &answer.value_type } else { &answer.declared_type }
}
