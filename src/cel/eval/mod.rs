//! Evaluates a program with given values of its variables, within cost limits.
//!
//! | part | decides |
//! |---|---|
//! | `evaluation` | arena, limits, deadline: what outlives one run |
//! | `bindings` | the values of variables |
//! | `machine` | one run: dispatch over the steps, literals |
//! | `logic` | `&&`, `\|\|`, `!`, equality, and other steps that are true or false |
//! | `walk` | the short way through attributes of documents |
//! | `attribute` | operands with fields and indexes |
//! | `call` | calls of the library |
//! | `fold` | comprehensions |
//! | `join` | `+` of lists |
//! | `watch`, `observe` | what observers are told, and the two observers that there are |
//! | `message` | message literals |
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
mod landmark;
mod logic;
mod machine;
mod message;
mod observe;
mod walk;
mod watch;

pub use bindings::{Bindings, Variables};
pub use evaluation::Evaluation;
pub use observe::{Coverage, Trace, TraceEntry};
pub use watch::{Observation, Observer};

use crate::plan::Program;
use crate::value::{EvalError, Value};
use watch::{Unwatched, Watched};

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
        machine::run(self, variables, cx, Unwatched)
    }

    /// Evaluates at the same cost, and reports the result of every subexpression to an observer: [`Trace`], [`Coverage`], both in a
    /// tuple, or the caller's own. What is not evaluated is not reported.
    ///
    /// # Errors
    ///
    /// As [`Self::eval`].
    pub fn observe<'a>(
        &'a self,
        variables: &dyn Variables<'a>,
        cx: &mut Evaluation<'a>,
        observer: &mut dyn Observer<'a>,
    ) -> Result<Value<'a>, EvalError> {
        machine::run(self, variables, cx, Watched::new(observer))
    }
}
