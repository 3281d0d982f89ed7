//! Runs a program over an activation, within the meter's limits.

mod bindings;

use std::fmt;

use bumpalo::Bump;

pub use bindings::{Bindings, Variables};

use crate::limits;
use crate::plan::Program;
use crate::value::{EvalError, Value};

/// Where and within which limits programs run; used again for the next evaluation of the same documents.
pub struct Evaluation<'a> {
    arena: &'a Bump,
    limit: u64,
    budget: Option<u64>,
    deadline: Option<&'a dyn Fn() -> bool>,
    cost: u64,
}

impl fmt::Debug for Evaluation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Evaluation")
            .field("limit", &self.limit)
            .field("budget", &self.budget)
            .field("cost", &self.cost)
            .finish_non_exhaustive()
    }
}

impl<'a> Evaluation<'a> {
    /// With Kubernetes' limit per call, no budget and no deadline. Results that are not scalars live in the arena.
    #[must_use]
    pub fn new(arena: &'a Bump) -> Self {
        Self { arena, limit: limits::PER_CALL_LIMIT, budget: None, deadline: None, cost: 0 }
    }

    /// The cost that one evaluation may reach.
    #[must_use]
    pub fn per_call_limit(mut self, limit: u64) -> Self {
        self.limit = limit;
        self
    }

    /// A budget that all evaluations share.
    #[must_use]
    pub fn budget(mut self, units: u64) -> Self {
        self.budget = Some(units);
        self
    }

    /// A function that says whether to stop, asked every 100 iterations.
    #[must_use]
    pub fn deadline(mut self, expired: &'a dyn Fn() -> bool) -> Self {
        self.deadline = Some(expired);
        self
    }

    /// The arena of results.
    #[must_use]
    pub const fn arena(&self) -> &'a Bump {
        self.arena
    }

    /// The cost of the last evaluation, also of one that failed.
    #[must_use]
    pub const fn cost(&self) -> u64 {
        self.cost
    }

    /// What is left of the budget.
    #[must_use]
    pub const fn budget_left(&self) -> Option<u64> {
        self.budget
    }
}

impl Program {
    /// The value of the expression.
    ///
    /// # Errors
    ///
    /// What went wrong with the data, or the limit that was reached. [`Evaluation::cost`] is set in either case.
    pub fn eval<'a>(
        &'a self,
        variables: &dyn Variables<'a>,
        cx: &mut Evaluation<'a>,
    ) -> Result<Value<'a>, EvalError> {
        let _ = variables;
        cx.cost = 0;
        Err(EvalError::Other("evaluation is not supported yet".into()))
    }
}
