//! Checks policies: unused variables and params, constant rules and conditions, and expressions in messages.

use admit_apimachinery::pointer::items;
use serde_json::Value;

use super::answers::Answers;
use super::unused::unused_variables;
use super::{Finding, message, warning};
use crate::read::manifest::Document;
use crate::vap::Policy;

pub(super) fn lint(document: &Document, policy: &Policy) -> Vec<Finding> {
    let texts = policy.expressions();
    let texts = texts.iter().map(|expression| expression.text);
    let mut findings = unused_variables(document, texts, |without| Policy::compile(without).is_ok());
    findings.extend(unused_params(document, policy));
    findings.extend(constant_rules(document, policy));
    findings.extend(messages(document));
    findings
}

fn unused_params(document: &Document, policy: &Policy) -> Option<Finding> {
    policy.param_kind.as_ref()?;
    let mut without = document.value.clone();
    without.pointer_mut("/spec").and_then(Value::as_object_mut)?.shift_remove("paramKind");
    Policy::compile(&without).ok()?;
    let problem = "no expression uses `params`".to_owned();
    let help = "without params in its namespace the policy may not be evaluated at all; take paramKind out";
    Some(warning(document, "unused-params", "spec.paramKind", problem, help))
}

fn constant_rules(document: &Document, policy: &Policy) -> Vec<Finding> {
    let conditioned = !items(&document.value, "/spec/matchConditions").is_empty();
    let finding = |path: &str, text: &str, answer: bool| {
        let condition = path.starts_with("spec.matchConditions");
        let (problem, help) = match (condition, answer) {
            (true, true) => ("always holds", "take it out: it excludes nothing"),
            (true, false) => ("never holds", "the policy is never evaluated"),
            (false, true) => ("cannot be false", "it denies nothing"),
            // `false` as a rule is fine where match conditions select what is forbidden.
            (false, false) if conditioned && text.trim() == "false" => return None,
            (false, false) => ("cannot be true", "it denies everything that the policy matches"),
        };
        Some(warning(document, "constant-rule", path, format!("`{}` {problem}", text.trim()), help))
    };
    let is_rule = |path: &str| {
        path.starts_with("spec.matchConditions")
            || path.starts_with("spec.validations") && path.ends_with(".expression")
    };
    let mut answers = Answers::default();
    policy
        .expressions()
        .into_iter()
        .filter(|expression| is_rule(&expression.id.path))
        .filter_map(|expression| {
            finding(&expression.id.path, expression.text, answers.constant(&expression)?)
        })
        .collect()
}

fn messages(document: &Document) -> Vec<Finding> {
    let rules = items(&document.value, "/spec/validations").iter().enumerate();
    let texts = rules.filter_map(|(index, rule)| Some((index, rule.get("message")?.as_str()?)));
    texts
        .filter(|(_, text)| message::is_expression(text))
        .map(|(index, text)| in_message(document, &format!("spec.validations[{index}].message"), text))
        .collect()
}

/// Reports an expression in a message, which is not evaluated.
pub(super) fn in_message(document: &Document, field: &str, text: &str) -> Finding {
    let problem = format!("`{text}` is shown as it stands, though it looks like an expression");
    warning(document, "cel-in-message", field, problem, "expressions belong in messageExpression")
}
