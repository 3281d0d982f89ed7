//! Holds what outlives one run: the arena of results, limits, the deadline, and reusable buffers.

use std::fmt;

use bumpalo::Bump;
use bumpalo::collections::Vec as ArenaVec;

use crate::limits;
use crate::value::{EvalError, Value, room};

/// The memory and limits of runs; reusable for the next program over the same documents.
///
/// ```
/// use admit_cel::{Bindings, Env, EvalError, Evaluation, Mode, Type, Value, Version};
///
/// let env = Env::kubernetes(Version(1, 36), Mode::New).with_variable("n", Type::Int);
/// let program = env.program(&env.compile("[n, n, n].all(i, i == n)")?)?;
/// let mut bindings = Bindings::new(&program);
/// bindings.set("n", Value::Int(1));
///
/// let arena = bumpalo::Bump::new();
/// let mut cx = Evaluation::new(&arena).budget(1_000).max_arena_bytes(1 << 20);
/// program.eval(&bindings, &mut cx)?;
/// let spent = cx.cost();
/// assert_eq!(cx.budget_left(), Some(1_000 - spent));
/// cx.charge(1_000);
/// assert_eq!(cx.budget_left(), None, "overspent");
/// assert!(std::ptr::eq(cx.arena(), &arena));
///
/// let mut poor = Evaluation::new(&arena).per_call_limit(spent - 1);
/// assert_eq!(program.eval(&bindings, &mut poor).unwrap_err(), EvalError::CostLimitExceeded);
///
/// // Asked every 100 rounds.
/// let (late, long) = (|| true, env.program(&env.compile("lists.range(n).all(i, i >= 0)")?)?);
/// let mut bindings = Bindings::new(&long);
/// bindings.set("n", Value::Int(1_000));
/// let mut hurried = Evaluation::new(&arena).deadline(&late);
/// assert_eq!(long.eval(&bindings, &mut hurried).unwrap_err(), EvalError::Interrupted);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Evaluation<'a> {
    pub(super) arena: &'a Bump,
    pub(super) limit: u64,
    pub(super) deadline: Option<&'a dyn Fn() -> bool>,
    /// The values of comprehension variables, kept for their capacity.
    pub(super) locals: ArenaVec<'a, Result<Value<'a>, EvalError>>,
    pub(super) cost: u64,
    max_arena_bytes: usize,
    budget: Option<u64>,
}

/// The maximum number of bytes that one evaluation may add to the arena. Under Kubernetes' cost limit strings grow by ten characters
/// per unit and lists by a value of 32 bytes, so legitimate expressions stay below.
const MAX_ARENA_BYTES: usize = 64 << 20;

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
    /// Starts with Kubernetes' limit per call, without budget and deadline. Results other than scalars are in the arena.
    #[must_use]
    pub fn new(arena: &'a Bump) -> Self {
        Self {
            arena,
            limit: limits::PER_CALL_LIMIT,
            deadline: None,
            locals: ArenaVec::new_in(arena),
            cost: 0,
            max_arena_bytes: MAX_ARENA_BYTES,
            budget: None,
        }
    }

    /// The cost that one evaluation may reach.
    #[must_use]
    pub fn per_call_limit(mut self, limit: u64) -> Self {
        self.limit = limit;
        self
    }

    /// A budget that all evaluations share. Spending it does not stop an evaluation: as in Kubernetes, the caller looks
    /// at [`Self::budget_left`] between evaluations.
    #[must_use]
    pub fn budget(mut self, units: u64) -> Self {
        self.budget = Some(units);
        self
    }

    /// Sets a function that tells whether to stop, called every 100 iterations.
    #[must_use]
    pub fn deadline(mut self, expired: &'a dyn Fn() -> bool) -> Self {
        self.deadline = Some(expired);
        self
    }

    /// The bytes that one evaluation may add to the arena.
    #[must_use]
    pub fn max_arena_bytes(mut self, bytes: usize) -> Self {
        self.max_arena_bytes = bytes;
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

    /// Returns the rest of the budget: None without a budget, and if it is overspent.
    #[must_use]
    pub const fn budget_left(&self) -> Option<u64> {
        self.budget
    }

    /// Takes the cost of another evaluation from the budget.
    pub const fn charge(&mut self, cost: u64) {
        if let Some(budget) = self.budget {
            self.budget = budget.checked_sub(cost);
        }
    }

    /// Makes ready for a run of a program with that many comprehension variables. Returns the arena's own limit, which
    /// [`Self::finish`] restores.
    pub(super) fn start(&mut self, locals: usize) -> Option<usize> {
        self.cost = 0;
        self.locals.clear();
        self.locals.resize(locals, Ok(Value::Null));
        let outer = self.arena.allocation_limit();
        let limit = self.arena.allocated_bytes().saturating_add(self.max_arena_bytes);
        self.arena.set_allocation_limit(Some(outer.map_or(limit, |outer| outer.min(limit))));
        outer
    }

    pub(super) fn finish(&mut self, arena_limit: Option<usize>) {
        self.arena.set_allocation_limit(arena_limit);
        self.charge(self.cost);
    }

    /// Room for that many values of a list or map.
    pub(super) fn room_for<T>(&self, count: usize) -> Result<ArenaVec<'a, T>, EvalError> {
        room(self.arena, count)
    }
}
