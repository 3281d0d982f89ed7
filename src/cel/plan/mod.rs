//! Compiles a checked expression to a program: resolves names, fields and overloads once, and folds constants as cel-go does with
//! optimisation (conversions of constants, list and map literals, `in` on constant lists, constant patterns).
//!
//! Input: a [`CheckedAst`] and the environment's variables and functions. Output: a [`Program`], which the evaluator runs.

mod attribute;
mod branches;
mod call;
mod comprehension;
mod patterns;
mod planner;
mod step;
mod usage;

use std::fmt;
use std::sync::{Arc, OnceLock};

pub(crate) use branches::Points;
pub use branches::{Branch, BranchKind};
pub(crate) use call::unknown;
pub use patterns::{KnownPattern, PatternError, PatternSum};
pub(crate) use planner::Options;
pub(crate) use step::*;
pub(crate) use usage::uses_variable;

use crate::check::CheckedAst;
use crate::library::Functions;
use crate::source::Span;
pub(crate) use crate::syntax::ExprId;
use crate::types::Type;
use crate::value::EvalError;

/// The number of a variable in the environment of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot(pub u16);

/// An expression ready to run. Cheap to clone, shared between threads.
///
/// ```
/// use admit_cel::{Bindings, BranchKind, Env, Evaluation, Mode, Slot, Trace, Type, Value, Version};
///
/// let env = Env::kubernetes(Version(1, 36), Mode::New).with_variable("x", Type::Bool);
/// let program = env.program(&env.compile("x && true")?)?;
/// assert_eq!((program.slot("x"), program.slot("y")), (Some(Slot(0)), None));
/// assert!(program.branches().iter().any(|branch| branch.kind == BranchKind::And));
///
/// let mut bindings = Bindings::new(&program);
/// bindings.set("x", Value::Bool(true));
/// let (arena, mut trace) = (bumpalo::Bump::new(), Trace::new(10));
/// let value = program.eval(&bindings, &mut Evaluation::new(&arena))?;
/// let watched = program.observe(&bindings, &mut Evaluation::new(&arena), &mut trace)?;
/// assert!(value.equals(&watched) && !trace.entries().is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Program {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    variables: Box<[Box<str>]>,
    root: Step,
    locals: u16,
    /// The span of each expression.
    spans: Box<[Span]>,
    is_bool: bool,
    is_strict: bool,
    points: OnceLock<Points>,
}

/// Why a checked expression cannot be compiled, in kube-apiserver's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProgramError {
    /// A constant part has no value.
    Constant(EvalError),
    /// An expression that the checker accepts and no evaluation could run, such as an index of an impossible type.
    Invalid(Box<str>),
}

impl fmt::Display for ProgramError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant(error) => write!(f, "program instantiation failed: {error}"),
            Self::Invalid(what) => write!(f, "program instantiation failed: {what}"),
        }
    }
}

impl std::error::Error for ProgramError {}

impl Program {
    pub(crate) fn plan(
        checked: &CheckedAst,
        variables: Vec<Box<str>>,
        functions: &Functions,
        options: Options,
        patterns: &mut PatternSum,
    ) -> Result<Self, ProgramError> {
        let mut planner = planner::Planner::new(checked, variables, functions, options, patterns);
        let root = planner.step(checked.ast().root)?;
        let (variables, locals) = planner.finish();
        let spans = checked.ast().spans.clone().into();
        let is_bool = *checked.output_type() == Type::Bool;
        let points = OnceLock::new();
        let is_strict = options.is_strict;
        Ok(Self { inner: Arc::new(Inner { variables, root, locals, spans, is_bool, is_strict, points }) })
    }

    /// The slot of a variable of the environment.
    #[must_use]
    pub fn slot(&self, name: &str) -> Option<Slot> {
        let at = self.inner.variables.iter().position(|known| **known == *name)?;
        u16::try_from(at).ok().map(Slot)
    }

    /// Returns the branches of the program, in an order that depends only on the text. For [`Coverage`](crate::Coverage).
    #[must_use]
    pub fn branches(&self) -> &[Branch] {
        self.points().branches()
    }

    pub(crate) fn points(&self) -> &Points {
        self.inner.points.get_or_init(|| Points::of(self, self.inner.is_bool))
    }

    pub(crate) fn variable(&self, slot: Slot) -> &str {
        self.inner.variables.get(usize::from(slot.0)).map_or("", |name| name)
    }

    pub(crate) fn span(&self, id: ExprId) -> Span {
        self.inner.spans.get(id.0 as usize).copied().unwrap_or_default()
    }

    /// Whether optional chains and map literals are judged as the language's suite does today.
    pub(crate) fn is_strict(&self) -> bool {
        self.inner.is_strict
    }

    pub(crate) fn root(&self) -> &Step {
        &self.inner.root
    }

    /// The number of comprehension variables.
    pub(crate) fn locals(&self) -> usize {
        usize::from(self.inner.locals)
    }
}
