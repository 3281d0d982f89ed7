//! Evaluates a single CEL expression on documents that the caller supplies, for `admit eval`.
//!
//! Input: a text and named JSON values. Output: the value with its type and cost, or why there is none. The caller
//! chooses the variables, all of which are untyped.

use admit_cel::{
    Bindings, CompileError, Env, EvalError, Evaluation, Mode, Node, ProgramError, Type, Value, runtime_type,
};
use bumpalo::Bump;
use serde_json::Value as Json;
use thiserror::Error;

use crate::release;
use crate::report::recording::{ExpressionId, Keep, Origin, Recorded, Recording, Subject};

/// The value of an expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The value as JSON; none if JSON cannot represent it (a type, an address, an infinite number, an optional
    /// without value).
    pub json: Option<Json>,
    /// The value in CEL's notation, cut where it is long.
    pub text: String,
    /// The type that the checker found: `list(string)`.
    pub declared_type: String,
    /// The type that the value has: `list`.
    pub value_type: String,
    /// Runtime cost in Kubernetes' units.
    pub cost: u64,
}

/// Why an expression has no value.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum AdhocError {
    /// It does not parse or type-check; the message has a caret line for every error.
    #[error("{0}")]
    Compile(CompileError),
    #[error("{0}")]
    Program(ProgramError),
    #[error("{error}")]
    Evaluation {
        error: EvalError,
        /// The cost up to the error.
        cost: u64,
    },
}

/// Bytes of a value in CEL's notation.
const SHOWN: usize = 1_000;

/// Evaluates `text` with `variables`, within Kubernetes' limit for one call.
///
/// # Errors
/// If the expression is invalid, or fails on these variables.
///
/// ```
/// use admit_policy::evaluate;
///
/// let answer = evaluate("self.spec.replicas <= 3", &[("self".to_owned(), serde_json::json!({"spec": {"replicas": 9}}))])?;
/// assert_eq!((answer.text.as_str(), answer.value_type.as_str()), ("false", "bool"));
/// # Ok::<(), admit_policy::AdhocError>(())
/// ```
pub fn evaluate(text: &str, variables: &[(String, Json)]) -> Result<Answer, AdhocError> {
    evaluated(text, variables, None)
}

/// Like [`evaluate`], with the values of subexpressions; None if it was not evaluated.
///
/// ```
/// use admit_policy::{Keep, evaluate_recorded, explanation};
///
/// let (answer, recorded) = evaluate_recorded("1 + a > 2", &[("a".to_owned(), 3.into())], Keep::TRACES);
/// let recorded = recorded.unwrap();
/// assert_eq!((answer.unwrap().text.as_str(), recorded.evaluations), ("true", 1));
/// assert_eq!(explanation::tree(&recorded.text, &recorded.traces[0])[0].parts[0].text, "1 + a");
/// assert!(evaluate_recorded("1 +", &[], Keep::TRACES).1.is_none());
/// ```
pub fn evaluate_recorded(
    text: &str,
    variables: &[(String, Json)],
    keep: Keep,
) -> (Result<Answer, AdhocError>, Option<Recorded>) {
    let recording = Recording::new(keep);
    let outcome = evaluated(text, variables, Some(&recording));
    (outcome, recording.finish().pop().map(|(_, recorded)| recorded))
}

fn evaluated(
    text: &str,
    variables: &[(String, Json)],
    recording: Option<&Recording>,
) -> Result<Answer, AdhocError> {
    let names = variables.iter().map(|(name, _)| (name.as_str(), Type::Dyn));
    let env = Env::of_release(release::followed(), Mode::New).with_variables(names);
    let checked = env.compile(text).map_err(AdhocError::Compile)?;
    let program = env.program(&checked).map_err(AdhocError::Program)?;
    let arena = Bump::new();
    let mut bindings = Bindings::new(&program);
    for (name, json) in variables {
        bindings.set(name, Value::untyped(Node::from_json(json)));
    }
    let mut cx = Evaluation::new(&arena);
    let value = match recording {
        Some(recording) => {
            // It is in no document.
            let id = || ExpressionId { origin: Origin::Policy { name: String::new() }, path: String::new() };
            recording.eval(&Subject { id: &id, text, at: &String::new }, &program, &bindings, &mut cx)
        }
        None => program.eval(&bindings, &mut cx),
    };
    let value = value.map_err(|error| AdhocError::Evaluation { error, cost: cx.cost() })?;
    Ok(Answer {
        // What JSON has no word for becomes null there.
        json: value.to_json(&arena).ok().filter(|json| !json.is_null() || matches!(value, Value::Null)),
        text: value.preview(SHOWN),
        declared_type: checked.output_type().to_string(),
        value_type: runtime_type::name_of(&value).to_owned(),
        cost: cx.cost(),
    })
}
