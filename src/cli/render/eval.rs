//! Renders the result of `admit eval`: the value of one expression.

use std::fmt::Write as _;

use admit_analysis::releases::Release;
use admit_analysis::releases::facts::Unknown;
use admit_policy::{AdhocError, Answer};
use serde_json::{Value, json};

use super::releases;

/// Releases with the same answer; None if there was no time to evaluate.
pub(in crate::cli) type ByRelease = (Vec<Release>, Option<Result<Answer, AdhocError>>);

/// Renders value, type and cost, one per line; a large value as indented JSON.
pub(in crate::cli) fn text(answer: &Answer) -> String {
    let value = answer.json.as_ref().map_or_else(|| answer.text.clone(), |json| format!("{json:#}"));
    format!("{value}\ntype: {}\ncost: {}\n", kind(answer), answer.cost)
}

/// Renders `{"value", "type", "cost"}`, or `{"error": {"phase", "message"}}`. A value that JSON cannot represent is null, with its
/// text beside it.
pub(in crate::cli) fn json(outcome: &Result<Answer, AdhocError>) -> String {
    super::json(&value(outcome))
}

/// Returns the document that [`json`] renders.
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

/// Returns an outcome as in [`json`]; null if there was no time to evaluate.
pub(in crate::cli) fn outcome(outcome: &Option<Result<Answer, AdhocError>>) -> Value {
    outcome.as_ref().map(value).unwrap_or_default()
}

/// Renders a block for each group of releases.
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

/// Renders `{"releases": [{"releases": […], "outcome"}], "unknown": […]}`, each outcome as in [`json`], null if there was no time.
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

/// Returns the declared type, or if that is `dyn` the type of the value.
fn kind(answer: &Answer) -> &str {
    if answer.declared_type == "dyn" { &answer.value_type } else { &answer.declared_type }
}
