//! The CEL of policies: which variables an expression may use, what it must evaluate to, and running it.
//!
//! Stands between policies and admit-cel, so that the rest of this module knows texts and answers only.

use serde_json::Value;

use super::policy::Policy;
use crate::host::Host;
use crate::matching::Matched;
use crate::request::Request;

/// What an expression may use beside `object`, `oldObject`, `request` and `namespaceObject`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Uses {
    pub(super) params: bool,
    pub(super) authorizer: bool,
}

/// What an expression must evaluate to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Returns {
    Any,
    Bool,
    String,
    StringOrNull,
}

/// An expression that is refused.
#[derive(Debug)]
pub(super) enum CompileError {
    /// It does not parse, check, or evaluate to the right type.
    Invalid(String),
    /// It cannot be made a program.
    Internal(String),
}

/// A compiled expression with its text.
#[derive(Debug)]
pub(super) struct Expression {
    pub(super) text: String,
}

/// Compiles the expressions of one policy; variables are declared as they are met.
#[derive(Debug, Default)]
pub(super) struct Compiler {
    variables: Vec<String>,
}

impl Compiler {
    /// From here on expressions may use `variables`.
    pub(super) fn declare_variables(&mut self) {}

    /// Declares a variable of the type of `expression`, or of any type where that did not compile.
    pub(super) fn declare_variable(&mut self, name: &str, _expression: Option<&Expression>) {
        self.variables.push(name.to_owned());
    }

    pub(super) fn compile(
        &self,
        text: &str,
        _returns: Returns,
        _uses: Uses,
    ) -> Result<Expression, CompileError> {
        Ok(Expression { text: text.to_owned() })
    }
}

/// What expressions are evaluated on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Inputs<'a> {
    pub(super) object: Option<&'a Value>,
    pub(super) old_object: Option<&'a Value>,
    pub(super) request: &'a Value,
    pub(super) params: Option<&'a Value>,
    pub(super) namespace: Option<&'a Value>,
    /// For the authorizer.
    pub(super) attributes: &'a Request,
    pub(super) matched: &'a Matched,
    pub(super) host: &'a dyn Host,
}

/// The answer of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Answer {
    Null,
    Bool(bool),
    Text(String),
    /// Of another type, by its name.
    Other(String),
}

/// The budget of a run is spent; nothing more may be evaluated.
#[derive(Debug)]
pub(super) struct OutOfBudget;

impl std::fmt::Display for OutOfBudget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(
            "validation failed due to running out of cost budget, no further validation rules will be run",
        )
    }
}

/// Evaluates expressions of one policy on the same inputs, with one budget. Variables are evaluated at first use and
/// kept for the session.
#[derive(Debug)]
pub(super) struct Session<'a> {
    policy: &'a Policy,
    inputs: &'a Inputs<'a>,
    remaining: u64,
}

impl<'a> Session<'a> {
    pub(super) fn new(policy: &'a Policy, inputs: &'a Inputs<'a>, budget: u64) -> Self {
        Self { policy, inputs, remaining: budget }
    }

    /// What is left of the budget.
    pub(super) fn remaining(&self) -> u64 {
        self.remaining
    }

    /// The answer of `expression`, or the text of its failure.
    pub(super) fn eval(&mut self, expression: &Expression) -> Result<Result<Answer, String>, OutOfBudget> {
        Ok(Err(format!("expression '{}' resulted in error: not supported", expression.text)))
    }
}
