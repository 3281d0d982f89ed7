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

/// The answer of a condition that is the same on every document. Where no variable has a value, naming one is an error,
/// which only `&&`, `||` and `?:` can make up for; what comes out all the same comes out for every value.
pub(super) fn constant(program: &Program) -> Option<bool> {
    let arena = Bump::new();
    match program.eval(&Unbound, &mut Evaluation::new(&arena)) {
        Ok(Value::Bool(answer)) => Some(answer),
        Ok(_) | Err(_) => None,
    }
}
