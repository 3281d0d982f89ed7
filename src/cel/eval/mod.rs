//! Runs a program over the values of its variables, within the meter's limits.
//!
//! | part | decides |
//! |---|---|
//! | `evaluation` | arena, limits, deadline: what outlives one run |
//! | `bindings` | the values of variables |
//! | `machine` | one run: dispatch over the steps, `&&`, `\|\|`, equality, literals |
//! | `attribute` | operands with fields and indexes |
//! | `call` | calls of the library |
//! | `fold` | comprehensions |
//! | `join` | `+` of lists |
//!
//! Costs are cel-go's `interpreter/runtimecost.go` as Kubernetes configures it, to the unit, also where an error cuts
//! an expression short: the meter there counts what was observed, so a call whose arguments were all evaluated pays
//! even if one of them is an error.

mod attribute;
mod bindings;
mod call;
mod evaluation;
mod fold;
mod join;
mod machine;

pub use bindings::{Bindings, Variables};
pub use evaluation::{Evaluation, Trace};

use crate::plan::Program;
use crate::value::{EvalError, Value};

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
        machine::run(self, variables, cx, None)
    }

    /// The same, noting the outcome of every sub-expression that is evaluated, in the order of their completion. What
    /// constant folding and the shapes of macros make unnecessary is not evaluated and not noted.
    ///
    /// # Errors
    ///
    /// As [`Self::eval`].
    pub fn explain<'a>(
        &'a self,
        variables: &dyn Variables<'a>,
        cx: &mut Evaluation<'a>,
        trace: &mut Vec<Trace<'a>>,
    ) -> Result<Value<'a>, EvalError> {
        machine::run(self, variables, cx, Some(trace))
    }
}
