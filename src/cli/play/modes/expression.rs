//! Evaluates a single expression with named variables.

use admit_policy::manifest::Document;
use admit_policy::{AdhocError, Keep, evaluate_recorded};
use serde_json::Value;

use super::super::answer::{Answer, Mistake, Place};
use super::super::request::Texts;
use super::super::{examples, shown};
use super::documents::one;
use super::{Mode, Pane};
use crate::cli::eval::is_identifier;
use crate::cli::render::eval;

const EXPRESSION: Pane = Pane {
    name: "expression",
    title: "Expression",
    hint: "In the CEL of Kubernetes, with all of its libraries",
};
const VARIABLES: Pane = Pane {
    name: "variables",
    title: "Variables",
    hint: "A map of names and values in YAML, such as `self`, `oldSelf`, `object`, `params`",
};

pub(super) const MODE: Mode = Mode {
    name: "expression",
    title: "One expression",
    about: "What an expression comes to, its type and its cost, with the value of every part. Variables have no types.",
    panes: &[EXPRESSION, VARIABLES],
    examples: examples::EXPRESSION,
    evaluate: |texts| evaluated(texts).unwrap_or_else(Answer::mistaken),
    pictures: None,
};

fn evaluated(texts: &Texts) -> Result<Answer, Vec<Mistake>> {
    let variables = one(texts, VARIABLES.name)?.map(variables).transpose()?.unwrap_or_default();
    let text = texts.get(EXPRESSION.name);
    if text.trim().is_empty() {
        return Err(vec![Mistake::of_pane(EXPRESSION.name, "write an expression, or choose an example")]);
    }
    let (outcome, recorded) = evaluate_recorded(text, &variables, Keep::TRACES);
    let told = match &outcome {
        Ok(answer) => Answer::of("value", answer.text.clone()),
        Err(AdhocError::Evaluation { error, .. }) => {
            Answer::of("error", format!("evaluation failed: {error}"))
        }
        Err(AdhocError::Program(error)) => {
            return Err(vec![Mistake::of_pane(EXPRESSION.name, error.to_string())]);
        }
        Err(AdhocError::Compile(error)) => return Err(uncompiled(error)),
    };
    let (expressions, coverage) =
        recorded.map(|recorded| shown::alone(EXPRESSION.name, &recorded)).unwrap_or_default();
    Ok(Answer { value: Some(eval::value(&outcome)), expressions, coverage, ..told })
}

fn uncompiled(error: &admit_cel::CompileError) -> Vec<Mistake> {
    let one = |diagnostic: &admit_cel::Diagnostic| {
        let at = |number: u32| usize::try_from(number).unwrap_or(usize::MAX).max(1);
        let (line, column) =
            diagnostic.position.map_or((1, 1), |position| (at(position.line), at(position.column)));
        let place = Place { field: EXPRESSION.name.to_owned(), line, column };
        Mistake { message: diagnostic.message.clone(), path: String::new(), place: Some(place) }
    };
    error.diagnostics().iter().map(one).collect()
}

/// Reads the variables from a map of names and values.
fn variables(document: Document) -> Result<Vec<(String, Value)>, Vec<Mistake>> {
    let Value::Object(map) = &document.value else {
        return Err(vec![Mistake::of_field(&document, "", "must be a map of names and values")]);
    };
    let wrong: Vec<Mistake> = map
        .keys()
        .filter(|name| !is_identifier(name))
        .map(|name| {
            let why = format!("`{name}` is no name of a variable");
            Mistake::of_field(&document, &format!("[{name}]"), why)
        })
        .collect();
    if !wrong.is_empty() {
        return Err(wrong);
    }
    let Document { value: Value::Object(map), .. } = document else { return Ok(Vec::new()) };
    Ok(map.into_iter().collect())
}
