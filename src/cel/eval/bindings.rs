//! Holds the values of variables, by slot.

use crate::plan::{Program, Slot};
use crate::value::{EvalError, Value};

/// The values of a program's variables.
///
/// ```
/// use admit_cel::{Env, EvalError, Evaluation, Mode, Slot, Type, Value, Variables, Version};
///
/// /// Every variable is its own number, but the first, which cannot be had.
/// struct Numbers;
///
/// impl<'a> Variables<'a> for Numbers {
///     fn get(&self, slot: Slot) -> Option<Result<Value<'a>, EvalError>> {
///         Some(match slot {
///             Slot(0) => Err(EvalError::NoSuchAttribute("a".into())),
///             Slot(number) => Ok(Value::Int(number.into())),
///         })
///     }
/// }
///
/// let env = Env::kubernetes(Version(1, 36), Mode::New).with_variables([("a", Type::Int), ("b", Type::Int)]);
/// let program = env.program(&env.compile("a > 0 || b == 1")?)?;
/// let arena = bumpalo::Bump::new();
/// assert!(matches!(program.eval(&Numbers, &mut Evaluation::new(&arena))?, Value::Bool(true)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Variables<'a> {
    /// Returns the value of a variable; None if it is not bound. An error is the value of every expression that uses it.
    fn get(&self, slot: Slot) -> Option<Result<Value<'a>, EvalError>>;
}

/// Values set one by one. Serves every program of the environment, and of those it extends.
///
/// ```
/// use admit_cel::{Bindings, Env, Evaluation, Mode, Type, Value, Version};
///
/// let env = Env::kubernetes(Version(1, 36), Mode::New).with_variables([("a", Type::Int), ("b", Type::Int)]);
/// let program = env.program(&env.compile("a < b")?)?;
/// let b = program.slot("b").unwrap();
/// let mut bindings = Bindings::new(&program);
/// bindings.set("a", Value::Int(1)).set("unknown", Value::Null);
/// let arena = bumpalo::Bump::new();
/// for (number, less) in [(0, false), (2, true)] {
///     bindings.set_slot(b, Value::Int(number));
///     let value = program.eval(&bindings, &mut Evaluation::new(&arena))?;
///     assert!(value.equals(&Value::Bool(less)));
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
