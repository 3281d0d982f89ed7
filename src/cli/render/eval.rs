//! Renders the result of `admit eval`: the value of one expression.

use admit_policy::{AdhocError, Answer};
use serde_json::{Value, json};

/// Value, type and cost, a line each; the value of several lines where it is large.
pub(in crate::cli) fn text(answer: &Answer) -> String {
    let value = answer.json.as_ref().map_or_else(|| answer.text.clone(), |json| format!("{json:#}"));
    format!("{value}\ntype: {}\ncost: {}\n", kind(answer), answer.cost)
}

/// `{"value", "type", "cost"}`, or `{"error": {"phase", "message"}}`. A value that JSON cannot hold is null, with its
/// text beside it.
pub(in crate::cli) fn json(outcome: &Result<Answer, AdhocError>) -> String {
    let document = match outcome {
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
    };
    super::json(&document)
}

/// What the checker knows; where that is nothing, what came out.
fn kind(answer: &Answer) -> &str {
    if answer.declared_type == "dyn" { &answer.value_type } else { &answer.declared_type }
}
