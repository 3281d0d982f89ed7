//! Defines what the machine reports to an observer. The machine is compiled twice, with and without observation, so that observation
//! costs nothing if unused.
//!
//! Macro expansions contain nodes that no user wrote; they have the span of the macro's call, so of nodes with equal spans only the
//! outermost is reported.

use crate::plan::{ExprId, Program};
use crate::source::Span;
use crate::value::{EvalError, Value};

/// The outcome of one sub-expression.
#[derive(Clone, Copy, Debug)]
pub struct Observation<'o, 'a> {
    /// The sub-expression, as the program's syntax tree numbers it.
    pub expr: ExprId,
    /// The span of the expression.
    pub span: Span,
    /// Inside macros: the round of every macro around it, counted from 0, outermost first. Empty outside.
    pub rounds: &'o [u32],
    /// Its value, or why it has none.
    pub outcome: &'o Result<Value<'a>, EvalError>,
}

/// Receives the results of subexpressions, in the order of their completion.
///
/// Operands that are literals may be left out, and so are the parts of a constant (`[1, 2]`) and of a chain of `&&` or `||`: `a && b &&
/// c` is one expression with three terms.
///
/// ```
/// use admit_cel::{Bindings, Env, Evaluation, Mode, Observation, Observer, Version};
///
/// /// Counts what fails.
/// #[derive(Default)]
/// struct Failures(u32);
///
/// impl<'a> Observer<'a> for Failures {
///     fn observe(&mut self, observation: &Observation<'_, 'a>) {
///         self.0 += u32::from(observation.outcome.is_err());
///     }
/// }
///
/// let env = Env::kubernetes(Version(1, 36), Mode::New).without_folding();
/// let program = env.program(&env.compile("1 / 0 == 1 || true")?)?;
/// let (arena, mut failures) = (bumpalo::Bump::new(), Failures::default());
/// program.observe(&Bindings::new(&program), &mut Evaluation::new(&arena), &mut failures)?;
/// assert_eq!(failures.0, 2, "the quotient, and what it is compared in");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Observer<'a> {
    /// Takes note of one outcome.
    fn observe(&mut self, observation: &Observation<'_, 'a>);
}

/// Two observers of one evaluation.
impl<'a, A: Observer<'a>, B: Observer<'a>> Observer<'a> for (&mut A, &mut B) {
    fn observe(&mut self, observation: &Observation<'_, 'a>) {
        self.0.observe(observation);
        self.1.observe(observation);
    }
}

/// The machine's side: which of the two machines it is.
pub(super) trait Watch<'a> {
    /// Whether anything is observed; if false, no values are prepared for the observer.
    const WATCHES: bool;

    fn note(&mut self, program: &Program, expr: ExprId, outcome: &Result<Value<'a>, EvalError>);

    /// A fold begins: until the first iteration, evaluation is outside of its iterations.
    fn enter(&mut self);

    /// The innermost fold begins a round.
    fn round(&mut self, at: usize);

    /// The rounds of the innermost fold are over.
    fn after_rounds(&mut self);

    /// The innermost fold ends.
    fn leave(&mut self);
}

/// Nobody watches.
pub(super) struct Unwatched;

impl<'a> Watch<'a> for Unwatched {
    const WATCHES: bool = false;

    #[inline(always)]
    fn note(&mut self, _: &Program, _: ExprId, _: &Result<Value<'a>, EvalError>) {}

    #[inline(always)]
    fn enter(&mut self) {}

    #[inline(always)]
    fn round(&mut self, _: usize) {}

    #[inline(always)]
    fn after_rounds(&mut self) {}

    #[inline(always)]
    fn leave(&mut self) {}
}

/// An observer watches.
pub(super) struct Watched<'o, 'a> {
    observer: &'o mut dyn Observer<'a>,
    rounds: Vec<u32>,
    /// For each enclosing fold, how many iterations are outside of it.
    outside: Vec<usize>,
}

impl<'o, 'a> Watched<'o, 'a> {
    pub(super) fn new(observer: &'o mut dyn Observer<'a>) -> Self {
        Self { observer, rounds: Vec::new(), outside: Vec::new() }
    }
}

impl<'a> Watch<'a> for Watched<'_, 'a> {
    const WATCHES: bool = true;

    fn note(&mut self, program: &Program, expr: ExprId, outcome: &Result<Value<'a>, EvalError>) {
        if program.points().is_written(expr) {
            let span = program.span(expr);
            self.observer.observe(&Observation { expr, span, rounds: &self.rounds, outcome });
        }
    }

    fn enter(&mut self) {
        self.outside.push(self.rounds.len());
    }

    fn round(&mut self, at: usize) {
        self.after_rounds();
        self.rounds.push(u32::try_from(at).unwrap_or(u32::MAX));
    }

    fn after_rounds(&mut self) {
        self.rounds.truncate(self.outside.last().copied().unwrap_or_default());
    }

    fn leave(&mut self) {
        self.after_rounds();
        self.outside.pop();
    }
}
