//! Finds expressions whose result does not depend on any document.

use admit_cel::{Evaluation, Program, Slot, Value, Variables};
use bumpalo::Bump;

/// No variable has a value.
struct Unbound;

impl<'a> Variables<'a> for Unbound {
    fn get(&self, _: Slot) -> Option<Result<Value<'a>, admit_cel::EvalError>> {
        None
    }
}

/// Returns the result of a condition that is the same on every document. The condition is evaluated without any variables: using one is
/// an error, which only `&&`, `||` and `?:` can absorb, so a result does not depend on any value.
pub(super) fn constant(program: &Program) -> Option<bool> {
    let arena = Bump::new();
    match program.eval(&Unbound, &mut Evaluation::new(&arena)) {
        Ok(Value::Bool(answer)) => Some(answer),
        Ok(_) | Err(_) => None,
    }
}
