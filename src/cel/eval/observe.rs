//! Implements two observers: [`Trace`] records results, [`Coverage`] marks branches.

use crate::plan::{Branch, Program};
use crate::source::Span;
use crate::value::{EvalError, Value};

use super::watch::{Observation, Observer};

/// Keeps the outcomes of sub-expressions in the order of their completion, the first so many of them.
///
/// ```
/// use admit_cel::{Bindings, Coverage, Env, Evaluation, Mode, Trace, Version};
///
/// let text = "[1, 5].all(x, x < 3)";
/// let env = Env::kubernetes(Version(1, 36), Mode::New);
/// let program = env.program(&env.compile(text)?)?;
/// let arena = bumpalo::Bump::new();
/// let (mut trace, mut coverage) = (Trace::new(100), Coverage::new(&program));
/// let bindings = Bindings::new(&program);
/// program.observe(&bindings, &mut Evaluation::new(&arena), &mut (&mut trace, &mut coverage))?;
///
/// let shown: Vec<_> = trace
///     .entries()
///     .iter()
///     .map(|entry| (entry.span.of(text), &*entry.rounds, entry.outcome.as_ref().unwrap().preview(80)))
///     .collect();
/// assert_eq!(shown[1], ("x", &[0][..], "1".to_owned()));
/// assert_eq!(shown[6], ("x < 3", &[1][..], "false".to_owned()));
/// assert_eq!(shown[7], (text, &[][..], "false".to_owned()));
/// assert_eq!(trace.omitted(), 0);
///
/// let missed: Vec<_> = coverage.branches().filter(|(_, hit)| !hit).map(|(branch, _)| branch).collect();
/// assert_eq!(missed.len(), 1, "the expression was never true");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Trace<'a> {
    entries: Vec<TraceEntry<'a>>,
    capacity: usize,
    omitted: u64,
}

/// The outcome of one sub-expression.
#[derive(Clone, Debug)]
pub struct TraceEntry<'a> {
    /// The span of the expression.
    pub span: Span,
    /// Inside macros: the round of every macro around it, counted from 0, outermost first. Empty outside.
    pub rounds: Box<[u32]>,
    /// Its value, or why it has none.
    pub outcome: Result<Value<'a>, EvalError>,
}

impl<'a> Trace<'a> {
    /// Keeps at most `capacity` outcomes.
    #[must_use]
    pub const fn new(capacity: usize) -> Self {
        Self { entries: Vec::new(), capacity, omitted: 0 }
    }

    /// Returns what was recorded, in the order of completion: operands come before their expression.
    #[must_use]
    pub fn entries(&self) -> &[TraceEntry<'a>] {
        &self.entries
    }

    /// Returns the number of results beyond the recorded ones.
    #[must_use]
    pub const fn omitted(&self) -> u64 {
        self.omitted
    }
}

impl<'a> Observer<'a> for Trace<'a> {
    fn observe(&mut self, observation: &Observation<'_, 'a>) {
        if self.entries.len() >= self.capacity {
            self.omitted = self.omitted.saturating_add(1);
            return;
        }
        let Observation { expr: _, span, rounds, outcome } = *observation;
        self.entries.push(TraceEntry { span, rounds: rounds.into(), outcome: outcome.clone() });
    }
}

/// Which branches of a program were taken, over any number of evaluations. Takes a byte for each branch.
///
/// ```
/// use admit_cel::{Bindings, Coverage, Env, Evaluation, Mode, Type, Value, Version};
///
/// let env = Env::kubernetes(Version(1, 36), Mode::New).with_variable("x", Type::Int);
/// let program = env.program(&env.compile("x > 3 ? 'many' : 'few'")?)?;
/// let arena = bumpalo::Bump::new();
/// let mut all = Coverage::new(&program);
/// for x in [1, 9] {
///     let mut bindings = Bindings::new(&program);
///     bindings.set("x", Value::Int(x));
///     let mut coverage = Coverage::new(&program);
///     program.observe(&bindings, &mut Evaluation::new(&arena), &mut coverage)?;
///     assert_eq!((coverage.hits(), coverage.branches().len()), (1, program.branches().len()));
///     all.merge(&coverage);
/// }
/// assert_eq!(all.hits(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Coverage {
    program: Program,
    hits: Box<[bool]>,
}

impl Coverage {
    /// Starts with no branch taken.
    #[must_use]
    pub fn new(program: &Program) -> Self {
        Self { program: program.clone(), hits: vec![false; program.branches().len()].into() }
    }

    /// Every branch, in the order of [`Program::branches`], and whether it was taken.
    pub fn branches(&self) -> impl ExactSizeIterator<Item = (&Branch, bool)> {
        self.program.branches().iter().zip(self.hits.iter().copied())
    }

    /// Returns how many branches were taken.
    #[must_use]
    pub fn hits(&self) -> usize {
        self.hits.iter().filter(|hit| **hit).count()
    }

    /// Adds the branches of another evaluation of the same expression, which are identified by index.
    pub fn merge(&mut self, other: &Self) {
        for (hit, more) in self.hits.iter_mut().zip(&other.hits) {
            *hit |= more;
        }
    }
}

impl<'a> Observer<'a> for Coverage {
    fn observe(&mut self, observation: &Observation<'_, 'a>) {
        let value = match observation.outcome {
            Ok(Value::Bool(value)) => Some(*value),
            Ok(_) | Err(_) => None,
        };
        for branch in self.program.points().taken(observation.expr, value) {
            if let Some(hit) = self.hits.get_mut(branch) {
                *hit = true;
            }
        }
    }
}
