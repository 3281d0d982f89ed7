//! Every function of the language, one [`Overload`] row each: the checker, the planner, the estimator, the meter and
//! the documentation read that row and nothing else.

pub mod format;
pub mod quantity;
pub mod semver;
pub mod url;

use crate::cost::{CallEstimate, Operand};
use crate::value::{EvalError, Value};

/// What an implementation may use beside its arguments.
#[derive(Debug)]
pub struct Context<'a> {
    /// Results that are not scalars live here.
    pub arena: &'a bumpalo::Bump,
}

/// A function's body. `args` has the receiver first for member calls.
pub type Implementation = for<'a> fn(&Context<'a>, &[Value<'a>]) -> Result<Value<'a>, EvalError>;

/// A Kubernetes minor version: `V(1, 31)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u16, pub u16);

/// One overload of one function.
#[derive(Clone, Copy, Debug)]
pub struct Overload {
    /// cel-go's overload id, which error texts and references name: `add_int64`.
    pub id: &'static str,
    /// `function` with its signature in CEL notation: `size(string) -> int`, `list(T).sort() -> list(T)`,
    /// `_+_(int, int) -> int`. Single capitals are type parameters.
    pub signature: &'static str,
    pub implementation: Implementation,
    /// Cost beyond the arguments', and the size of the result, from the sizes of the arguments.
    pub estimate: fn(&[Operand<'_>]) -> CallEstimate,
    /// Cost of a call that was made, beyond the arguments'.
    pub cost: for<'a> fn(&[Value<'a>], &Value<'a>) -> u64,
    /// The first Kubernetes minor version that offers it.
    pub since: Version,
    /// One line for the reference page.
    pub doc: &'static str,
}
