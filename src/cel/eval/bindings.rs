//! Values of variables, by slot.

use crate::plan::{Program, Slot};
use crate::value::{EvalError, Value};

/// The values of a program's variables.
pub trait Variables<'a> {
    /// The value of a variable, none where none is bound. An error is the value of every expression that names it.
    fn get(&self, slot: Slot) -> Option<Result<Value<'a>, EvalError>>;
}

/// Values set one by one. Serves every program of the environment, and of those it extends.
#[derive(Clone, Debug)]
pub struct Bindings<'a> {
    program: &'a Program,
    /// The slots that nearly every environment gets by with.
    few: [Option<Value<'a>>; FEW],
    more: Vec<Option<Value<'a>>>,
}

const FEW: usize = 8;

impl<'a> Bindings<'a> {
    /// No variable bound.
    #[must_use]
    pub const fn new(program: &'a Program) -> Self {
        Self { program, few: [None; FEW], more: Vec::new() }
    }

    /// Binds a variable; a name that the environment does not know is ignored.
    pub fn set(&mut self, name: &str, value: Value<'a>) -> &mut Self {
        if let Some(slot) = self.program.slot(name) {
            self.set_slot(slot, value);
        }
        self
    }

    /// Binds a variable by its slot.
    pub fn set_slot(&mut self, slot: Slot, value: Value<'a>) {
        let at = usize::from(slot.0);
        if let Some(place) = self.few.get_mut(at) {
            *place = Some(value);
            return;
        }
        let at = at.saturating_sub(FEW);
        if self.more.len() <= at {
            self.more.resize(at.saturating_add(1), None);
        }
        if let Some(place) = self.more.get_mut(at) {
            *place = Some(value);
        }
    }
}

impl<'a> Variables<'a> for Bindings<'a> {
    fn get(&self, slot: Slot) -> Option<Result<Value<'a>, EvalError>> {
        let at = usize::from(slot.0);
        let place = self.few.get(at).or_else(|| self.more.get(at.saturating_sub(FEW)))?;
        place.map(Ok)
    }
}
