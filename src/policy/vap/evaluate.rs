//! Evaluates one policy on one request with one param: conditions, validations with their messages, audit
//! annotations.
//!
//! One function here applies failurePolicy, which turns errors into denials; the binding decides what a denial does.

use admit_apimachinery::field_error::together;
use admit_cel::Node;
use thiserror::Error;

use super::policy::{AuditAnnotation, FailurePolicy, Policy, Validation};
use super::session::{Answer, ExpressionError, Inputs, OutOfBudget, Session};
use crate::report::decision::{Reason, Skipped, Verdict};
use crate::report::recording::Purse;
use crate::request::host::HostError;

/// Runtime cost of all validations of one evaluation together.
pub(super) const BUDGET: (Purse, u64) = (Purse::Rules, 10_000_000);
/// Runtime cost of all match conditions of one evaluation together.
const CONDITIONS_BUDGET: (Purse, u64) = (Purse::Conditions, 2_500_000);
/// Runtime cost of all audit annotations of one evaluation together.
const ANNOTATIONS_BUDGET: (Purse, u64) = (Purse::Annotations, 10_000_000);
/// Bytes that a message expression may give.
const MAX_MESSAGE: usize = 5 * 1024;

/// Why it is unknown whether match conditions hold.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConditionsError {
    /// The objects of the request cannot be converted to the version that the policy matches.
    #[error(transparent)]
    Conversion(HostError),
    #[error(transparent)]
    OutOfBudget(#[from] OutOfBudget),
    /// Some failed, and none was false; at least one.
    #[error("{}", together(.0.iter().map(ExpressionError::to_string)))]
    Failed(Vec<ExpressionError>),
}

/// What an evaluation found.
#[derive(Debug, Default)]
pub(super) struct Evaluation {
    /// The condition that prevented the evaluation of the rules.
    pub(super) skipped: Option<Skipped>,
    /// Empty when that is so.
    pub(super) verdicts: Vec<Verdict>,
    pub(super) annotations: Vec<Annotation>,
}

/// What became of one audit annotation.
#[derive(Debug)]
pub(super) enum Annotation {
    Publish { key: String, value: String },
    Excluded,
    Error { message: String, denies: bool },
}

/// Evaluates `policy` on `inputs`.
pub(super) fn evaluate<'a>(policy: &'a Policy, inputs: Inputs<'a>) -> Evaluation {
    match conditions(policy, inputs) {
        Ok(None) => {}
        Ok(skipped) => return Evaluation { skipped, ..Evaluation::default() },
        Err(error) => return alone(policy, error.to_string()),
    }
    let verdicts = match validations(policy, inputs) {
        Ok(verdicts) => verdicts,
        Err(error) => return alone(policy, error.to_string()),
    };
    match annotations(policy, inputs) {
        Ok(annotations) => Evaluation { skipped: None, verdicts, annotations },
        Err(error) => alone(policy, error.to_string()),
    }
}

/// None where every condition holds, else the one that does not. A false one counts before any that failed.
pub(super) fn conditions<'a>(
    policy: &'a Policy,
    inputs: Inputs<'a>,
) -> Result<Option<Skipped>, ConditionsError> {
    // Conditions do not see the namespace.
    let inputs = Inputs { namespace: Node::Null, request: inputs.condition_request, ..inputs };
    let mut session = Session::new(policy, inputs, CONDITIONS_BUDGET);
    let mut errors = Vec::new();
    let mut refusing = None;
    for condition in &policy.conditions {
        match session.eval(condition) {
            Err(error) => return on_condition_error(policy, error.into()),
            Ok(Err(error)) => errors.push(error),
            Ok(Ok(Answer::Bool(false))) => refusing = refusing.or(Some(condition)),
            Ok(Ok(_)) => {}
        }
    }
    match (refusing, errors.as_slice()) {
        (Some(condition), _) => Ok(Some(Skipped::False { path: condition.path.clone() })),
        (None, []) => Ok(None),
        (None, _) => on_condition_error(policy, ConditionsError::Failed(errors)),
    }
}

fn on_condition_error(policy: &Policy, error: ConditionsError) -> Result<Option<Skipped>, ConditionsError> {
    match policy.failure_policy {
        FailurePolicy::Fail => Err(error),
        FailurePolicy::Ignore => Ok(Some(Skipped::Failed { message: error.to_string() })),
    }
}

fn validations<'a>(policy: &'a Policy, inputs: Inputs<'a>) -> Result<Vec<Verdict>, OutOfBudget> {
    let mut session = Session::new(policy, inputs, BUDGET);
    let verdict = |validation: &'a Validation| {
        Ok(match session.eval(&validation.expression)? {
            Ok(Answer::Bool(true)) => Verdict::Admitted,
            Ok(_) => Verdict::Failed { message: message(validation), reason: validation.reason },
            Err(error) => errored(policy, error.to_string()),
        })
    };
    let mut verdicts = policy.validations.iter().map(verdict).collect::<Result<Vec<_>, _>>()?;
    if let Err(error) = compute_messages(policy, inputs, &session, &mut verdicts) {
        let undone = verdicts.iter_mut().filter(|verdict| !matches!(verdict, Verdict::Errored { .. }));
        undone.for_each(|verdict| *verdict = errored(policy, format!("failed messageExpression: {error}")));
    }
    Ok(verdicts)
}

/// Replaces literal messages by the results of message expressions. Those of validations that hold are evaluated too, since their cost
/// counts anyway. A message expression that fails, or returns no usable string, changes nothing.
fn compute_messages<'a>(
    policy: &'a Policy,
    inputs: Inputs<'a>,
    before: &Session<'a>,
    verdicts: &mut [Verdict],
) -> Result<(), OutOfBudget> {
    let mut session = before.then(policy, Inputs { authorizer: None, ..inputs });
    for (validation, verdict) in policy.validations.iter().zip(verdicts) {
        let Some(expression) = &validation.message_expression else { continue };
        let computed = match session.eval(expression)? {
            Ok(Answer::Text(text)) => usable(&text),
            Ok(Answer::Null | Answer::Bool(_) | Answer::Other(_)) | Err(_) => None,
        };
        if let (Verdict::Failed { message, .. }, Some(text)) = (verdict, computed) {
            *message = text;
        }
    }
    Ok(())
}

fn usable(text: &str) -> Option<String> {
    let text = text.trim();
    let usable = !text.is_empty() && text.len() <= MAX_MESSAGE && !text.contains('\n');
    usable.then(|| text.to_owned())
}

/// The message as it is written.
fn message(validation: &Validation) -> String {
    if validation.message.is_empty() {
        format!("failed expression: {}", validation.expression.text.trim())
    } else {
        validation.message.clone()
    }
}

/// Annotations may name the authorizer, yet upstream gives them none.
fn annotations<'a>(policy: &'a Policy, inputs: Inputs<'a>) -> Result<Vec<Annotation>, OutOfBudget> {
    let mut session = Session::new(policy, Inputs { authorizer: None, ..inputs }, ANNOTATIONS_BUDGET);
    policy
        .audit_annotations
        .iter()
        .map(|annotation| Ok(published(policy, annotation, session.eval(&annotation.expression)?)))
        .collect()
}

fn published(
    policy: &Policy,
    annotation: &AuditAnnotation,
    answer: Result<Answer, ExpressionError>,
) -> Annotation {
    match answer {
        Ok(Answer::Text(text)) if text.trim().is_empty() => Annotation::Excluded,
        Ok(Answer::Text(text)) => {
            Annotation::Publish { key: annotation.key.clone(), value: text.trim().to_owned() }
        }
        Ok(Answer::Null) => Annotation::Excluded,
        Ok(Answer::Bool(_)) => wrong_type(annotation, "bool"),
        Ok(Answer::Other(name)) => wrong_type(annotation, &name),
        Err(error) => Annotation::Error { message: error.to_string(), denies: denies(policy) },
    }
}

/// Denies under either failurePolicy, as upstream has it.
fn wrong_type(annotation: &AuditAnnotation, found: &str) -> Annotation {
    let message = format!(
        "valueExpression '{}' resulted in unsupported return type: {found}. Return type must be either string or null.",
        annotation.expression.text
    );
    Annotation::Error { message, denies: true }
}

fn alone(policy: &Policy, message: String) -> Evaluation {
    Evaluation { skipped: None, verdicts: vec![errored(policy, message)], annotations: Vec::new() }
}

fn errored(policy: &Policy, message: String) -> Verdict {
    Verdict::Errored { message, denies: denies(policy) }
}

/// The one place where failurePolicy decides.
pub(super) fn denies(policy: &Policy) -> bool {
    match policy.failure_policy {
        FailurePolicy::Fail => true,
        FailurePolicy::Ignore => false,
    }
}

/// The reason that goes with a verdict that denies.
pub(super) fn reason(verdict: &Verdict) -> Reason {
    match verdict {
        Verdict::Failed { reason, .. } => *reason,
        Verdict::Admitted | Verdict::Errored { .. } => Reason::Invalid,
    }
}
