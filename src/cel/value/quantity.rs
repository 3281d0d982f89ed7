//! Represents quantities in expressions: the number, and whether arithmetic computed it.

use std::fmt;

use admit_apimachinery::quantity::Quantity as Number;

/// A resource quantity.
#[derive(Clone, Debug)]
pub struct Quantity<'a> {
    pub(crate) number: Number<'a>,
    /// Whether it is the result of arithmetic. Kubernetes finds no overload that compares anything to such a value on
    /// the right of `==`.
    pub(crate) computed: bool,
}

impl Quantity<'_> {
    /// Returns the number in billionths, in which every parsed quantity is an integer; None if that does not fit.
    ///
    /// ```
    /// use admit_cel::{Bindings, Env, Evaluation, Mode, Opaque, Value, Version};
    ///
    /// let env = Env::kubernetes(Version(1, 36), Mode::New);
    /// let program = env.program(&env.compile("quantity('1.5k')")?)?;
    /// let arena = bumpalo::Bump::new();
    /// let value = program.eval(&Bindings::new(&program), &mut Evaluation::new(&arena))?;
    /// let Value::Opaque(Opaque::Quantity(quantity)) = value else { panic!("{value:?}") };
    /// assert_eq!((quantity.nanos(), quantity.as_integer()), (Some(1_500_000_000_000), Some(1_500)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn nanos(&self) -> Option<i128> {
        self.number.nanos()
    }

    /// Returns the result of `asInteger`; None if it fails. [`Self::nanos`] has an example.
    #[must_use]
    pub fn as_integer(&self) -> Option<i64> {
        self.number.as_integer()
    }
}

impl PartialEq for Quantity<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl fmt::Display for Quantity<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.number.fmt(f)
    }
}
