//! Evaluates the expressions of a policy: provides their documents, shares their cost budget, and computes
//! `variables` at first use.

use std::cell::{Cell, OnceCell};
use std::fmt;

use admit_cel::{EvalError, Evaluation, HostMap, Map, Node, Slot, Value, Variables};
use bumpalo::Bump;
use thiserror::Error;

use super::authorizer::HostAuthorizer;
use super::expression::{Expression, Name};
use super::policy::Policy;
use crate::report::options::EvalOptions;
use crate::report::recording::{Purse, Subject};

/// Bytes of the stack that an expression may take, and how many more there are where fewer are left.
const LEAST_STACK: usize = 128 << 10;
const MORE_STACK: usize = 1 << 20;

/// The documents that expressions are evaluated on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Inputs<'a> {
    pub(super) arena: &'a Bump,
    pub(super) object: Node<'a>,
    pub(super) old_object: Node<'a>,
    pub(super) request: Node<'a>,
    /// What match conditions see in the place of `request`.
    pub(super) condition_request: Node<'a>,
    pub(super) params: Node<'a>,
    pub(super) namespace: Node<'a>,
    /// The authorizer; None where expressions may not use it.
    pub(super) authorizer: Option<&'a HostAuthorizer<'a>>,
    pub(super) eval: EvalOptions<'a>,
}

/// The answer of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Answer {
    Null,
    Bool(bool),
    Text(String),
    /// A value of another type, by its name.
    Other(String),
}

/// The budget of a session is spent; nothing more may be evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("validation failed due to running out of cost budget, no further validation rules will be run")]
pub struct OutOfBudget;

/// An expression of a policy that failed, in Kubernetes' words.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("expression '{expression}' resulted in error: {error}")]
pub struct ExpressionError {
    /// Its text.
    pub expression: String,
    pub error: EvalError,
}

/// Evaluates expressions of one policy on the same documents, with one cost budget. Variables are evaluated at first use and kept for
/// the session; the expression that uses one first pays its cost.
#[derive(Debug)]
pub(super) struct Session<'a> {
    scope: &'a Scope<'a>,
    purse: Purse,
    limit: u64,
    remaining: u64,
}

impl<'a> Session<'a> {
    pub(super) fn new(policy: &'a Policy, inputs: Inputs<'a>, (purse, budget): (Purse, u64)) -> Self {
        Self { scope: Scope::new(policy, inputs), purse, limit: budget, remaining: budget }
    }

    /// Starts a session for other expressions with the rest of the budget.
    pub(super) fn then(&self, policy: &'a Policy, inputs: Inputs<'a>) -> Self {
        Self { scope: Scope::new(policy, inputs), ..*self }
    }

    /// The answer of `expression`, or why it has none.
    pub(super) fn eval(
        &mut self,
        expression: &'a Expression,
    ) -> Result<Result<Answer, ExpressionError>, OutOfBudget> {
        Ok(self.value(expression)?.map(|value| Answer::of(&value)))
    }

    /// The value of `expression`, or why it has none.
    pub(super) fn value(
        &mut self,
        expression: &'a Expression,
    ) -> Result<Result<Value<'a>, ExpressionError>, OutOfBudget> {
        let (result, cost) = self.scope.run(expression);
        let of_variables = self.scope.variables_cost.take();
        let paid = self.pay(of_variables).and_then(|()| self.pay(cost));
        if let Some(recording) = self.scope.inputs.eval.recording {
            let cost = paid.is_ok().then(|| self.limit.saturating_sub(self.remaining));
            recording.pay(&self.scope.policy.id_of(expression).origin, self.purse, cost, self.limit);
        }
        paid?;
        Ok(result.map_err(|error| ExpressionError { expression: expression.text.clone(), error }))
    }

    fn pay(&mut self, cost: u64) -> Result<(), OutOfBudget> {
        if let Some(spent) = self.scope.inputs.eval.spent {
            spent.set(spent.get().saturating_add(cost));
        }
        self.remaining = self.remaining.checked_sub(cost).ok_or(OutOfBudget)?;
        Ok(())
    }
}

impl Answer {
    fn of(value: &Value<'_>) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(flag) => Self::Bool(*flag),
            Value::String(text) => Self::Text((*text).to_owned()),
            other => Self::Other(admit_cel::runtime_type::name_of(other).to_owned()),
        }
    }
}

/// What names mean in a session. Lives in the arena, so that the values of variables can live as long as the
/// documents.
///
/// INVARIANT: `own` is set right after allocation, before anything is evaluated.
struct Scope<'a> {
    policy: &'a Policy,
    inputs: Inputs<'a>,
    own: OnceCell<&'a Self>,
    /// The values, by position in the policy's list.
    values: &'a [Cell<Option<Memo<'a>>>],
    /// Cost of variables evaluated since it was last taken.
    variables_cost: Cell<u64>,
}

/// A variable's value, or its error message. Both are in the arena, so nothing needs to be dropped.
type Memo<'a> = Result<Value<'a>, &'a str>;

impl<'a> Scope<'a> {
    fn new(policy: &'a Policy, inputs: Inputs<'a>) -> &'a Self {
        let arena = inputs.arena;
        let values = arena.alloc_slice_fill_with(policy.variables.len(), |_| Cell::new(None));
        let scope: &'a Self =
            arena.alloc(Self { policy, inputs, own: OnceCell::new(), values, variables_cost: Cell::new(0) });
        // The cell is new, so that this cannot fail.
        let _ = scope.own.set(scope);
        scope
    }

    fn run(&'a self, expression: &'a Expression) -> (Result<Value<'a>, EvalError>, u64) {
        let EvalOptions { recording, deadline, spent: _ } = self.inputs.eval;
        let mut evaluation = Evaluation::new(self.inputs.arena);
        if let Some(deadline) = deadline {
            // An expression without rounds would not notice.
            if deadline.has_passed() {
                return (Err(EvalError::Interrupted), 0);
            }
            evaluation = evaluation.deadline(deadline.as_fn());
        }
        let names = Names { scope: self, expression };
        let result = match recording {
            None => expression.program.eval(&names, &mut evaluation),
            Some(recording) => {
                let id = || self.policy.id_of(expression);
                let subject = Subject { id: &id, text: &expression.text, at: &String::new };
                recording.eval(&subject, &expression.program, &names, &mut evaluation)
            }
        };
        (result, evaluation.cost())
    }

    fn variable(&'a self, name: &str) -> Option<Result<Value<'a>, EvalError>> {
        // Of two variables with one name the later counts.
        let position = self.policy.variables.iter().rposition(|variable| variable.name == name)?;
        let (variable, cell) = (self.policy.variables.get(position)?, self.values.get(position)?);
        let memo = cell.get().unwrap_or_else(|| {
            // In the later of two variables with one name, the name refers to itself, not to the earlier one.
            let arena = self.inputs.arena;
            cell.set(Some(Err(arena.alloc_str(&format!("composited variable \"{name}\" refers to itself")))));
            // Each variable may need the one before it, in a chain as long as a policy can be.
            let (result, cost) =
                stacker::maybe_grow(LEAST_STACK, MORE_STACK, || self.run(&variable.expression));
            self.variables_cost.set(self.variables_cost.get().saturating_add(cost));
            let memo = result.map_err(|error| {
                let text = format!("composited variable \"{name}\" fails to evaluate: {error}");
                &*arena.alloc_str(&text)
            });
            cell.set(Some(memo));
            memo
        });
        Some(memo.map_err(|text| EvalError::Other(text.into())))
    }
}

impl HostMap for Scope<'_> {
    fn find<'b>(&'b self, name: &str) -> Option<Result<Value<'b>, EvalError>> {
        self.own.get().and_then(|own| own.variable(name))
    }

    fn names(&self) -> &[Box<str>] {
        &self.policy.variable_names
    }
}

impl fmt::Debug for Scope<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").field("policy", &self.policy.name).finish_non_exhaustive()
    }
}

/// The variables of one expression, by its slots.
struct Names<'a> {
    scope: &'a Scope<'a>,
    expression: &'a Expression,
}

impl<'a> Variables<'a> for Names<'a> {
    fn get(&self, slot: Slot) -> Option<Result<Value<'a>, EvalError>> {
        let inputs = &self.scope.inputs;
        let node = match self.expression.name_of(slot)? {
            Name::Object => inputs.object,
            Name::OldObject => inputs.old_object,
            Name::Request => inputs.request,
            Name::Namespace => inputs.namespace,
            Name::Params => inputs.params,
            Name::Variables => return Some(Ok(Value::Map(Map::Host(self.scope)))),
            Name::Authorizer => {
                return inputs.authorizer.map(|host| Ok(Value::authorizer(inputs.arena, host)));
            }
            Name::RequestResource => {
                let value = |host: &'a HostAuthorizer<'a>| {
                    Value::resource_check(inputs.arena, host, host.request_resource())
                };
                return inputs.authorizer.map(|host| Ok(value(host)));
            }
        };
        Some(Ok(Value::untyped(node)))
    }
}
