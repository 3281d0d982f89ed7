//! Defines sizes and costs. The static estimate builds on the checker, the run-time cost is counted in the evaluator.

mod bounds;

pub use bounds::Bounds;
pub(crate) use bounds::{REGEX_LENGTH, STRING_TRAVERSAL, scale};

pub(crate) use crate::syntax::Literal;
use crate::types::Type;

/// What the estimator knows of one argument of a call.
///
/// ```
/// use admit_cel::syntax::Literal;
/// use admit_cel::{Bounds, Operand, Type};
///
/// let three = Literal::Int(3);
/// let count = Operand { size: Some(Bounds::ONE), ty: &Type::Int, items: None, literal: Some(&three) };
/// assert_eq!(count.integer(), Some(3));
/// let unknown = Operand { size: None, ty: &Type::String, items: None, literal: None };
/// assert_eq!(unknown.size_or_unbounded(), Bounds::UNBOUNDED);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Operand<'t> {
    /// The number of items, entries, code points or bytes; a scalar has [`Bounds::ONE`]; None if neither the expression nor a schema
    /// determines it.
    pub size: Option<Bounds>,
    /// The type of the argument.
    pub ty: &'t Type,
    /// The size of a list's items by its schema; None for anything else.
    pub items: Option<Bounds>,
    /// The constant, where the argument is one.
    pub literal: Option<&'t Literal>,
}

impl Operand<'_> {
    /// The integer, where the argument is an integer literal.
    #[must_use]
    pub const fn integer(&self) -> Option<i64> {
        match self.literal {
            Some(Literal::Int(integer)) => Some(*integer),
            _ => None,
        }
    }

    /// Returns the size, unbounded if it is unknown.
    #[must_use]
    pub fn size_or_unbounded(&self) -> Bounds {
        self.size.unwrap_or(Bounds::UNBOUNDED)
    }
}

/// The cost of a call beyond its arguments, and the size of its result.
///
/// ```
/// use admit_cel::{Bounds, CallEstimate};
///
/// assert_eq!(CallEstimate::of_cost(Bounds::new(1, 5)).result_size, None);
/// let copied = CallEstimate::with_result(Bounds::ONE, Bounds::new(0, 80));
/// assert_eq!(copied.result_size, Some(Bounds::new(0, 80)));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct CallEstimate {
    /// What the call costs beyond its arguments.
    pub cost: Bounds,
    /// The size of the result; None if its type determines it.
    pub result_size: Option<Bounds>,
}

impl CallEstimate {
    /// A cost of one, and a result whose type determines its size.
    pub const ONE: Self = Self { cost: Bounds::ONE, result_size: None };

    /// Creates an estimate with a cost, and a result whose type determines its size.
    #[must_use]
    pub const fn of_cost(cost: Bounds) -> Self {
        Self { cost, result_size: None }
    }

    /// A cost and the size of the result.
    #[must_use]
    pub const fn with_result(cost: Bounds, result_size: Bounds) -> Self {
        Self { cost, result_size: Some(result_size) }
    }
}
