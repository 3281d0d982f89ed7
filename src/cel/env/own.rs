//! Lets callers extend an environment with functions of their own, and with abstract types for them.

use std::sync::Arc;

use crate::library::{Overload, SignatureError};
use crate::types::{Type, parse_type_of};

use super::{Env, Inner};

impl Env {
    /// Returns the environment with an abstract type, which signatures and [`Self::parse_type`] may then use with as many parameters as
    /// it has; names of built-in types keep their meaning. It has no literals and no fields: functions return its values, and decide
    /// how to represent them.
    #[must_use]
    pub fn with_type(&self, name: &str, parameters: usize) -> Self {
        let types = self.inner.types.iter().cloned().chain([(name.into(), parameters)]).collect();
        Self { inner: Arc::new(Inner { types, ..(*self.inner).clone() }) }
    }

    /// Returns the environment with functions of the caller's own. A row replaces one with the same id, and otherwise adds an overload
    /// to the function of its name. The part before the name in a signature is the receiver if it is a type, else a namespace.
    ///
    /// ```
    /// use admit_cel::{Bindings, Env, Evaluation, List, Mode, Overload, Value, Version};
    ///
    /// const ROWS: &[Overload] = &[
    ///     Overload::new(
    ///         "pair_of",
    ///         "pair(A, B) -> pair(A, B)",
    ///         |context, args| Ok(Value::List(List::Values(context.arena.alloc_slice_copy(args)))),
    ///         "Two values, each of a type of its own.",
    ///     ),
    ///     Overload::new(
    ///         "pair_swap",
    ///         "pair(A, B).swap() -> pair(B, A)",
    ///         |context, args| match args {
    ///             [Value::List(List::Values([first, second]))] => {
    ///                 Ok(Value::List(List::Values(context.arena.alloc([*second, *first]))))
    ///             }
    ///             _ => Err(admit_cel::EvalError::NoSuchOverload),
    ///         },
    ///         "The values in the other order.",
    ///     ),
    /// ];
    ///
    /// let env = Env::kubernetes(Version(1, 36), Mode::New).with_type("pair", 2).with_functions(ROWS)?;
    /// let checked = env.compile("pair(1, 'a').swap()")?;
    /// assert_eq!(checked.output_type().to_string(), "pair(string, int)");
    /// let program = env.program(&checked)?;
    /// let arena = bumpalo::Bump::new();
    /// let value = program.eval(&Bindings::new(&program), &mut Evaluation::new(&arena))?;
    /// assert_eq!(value.preview(100), "[\"a\", 1]");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// For the first row with an invalid signature: types must be declared first.
    pub fn with_functions(&self, rows: &'static [Overload]) -> Result<Self, SignatureError> {
        let functions = Arc::new((*self.inner.functions).clone().with_rows(&self.inner.types, rows)?);
        Ok(Self { inner: Arc::new(Inner { functions, ..(*self.inner).clone() }) })
    }

    /// Reads a type in CEL notation, as [`parse_type`](crate::parse_type) does, with the caller's types.
    #[must_use]
    pub fn parse_type(&self, text: &str) -> Option<Type> {
        parse_type_of(&self.inner.types, text)
    }
}
