//! Quantities as expressions see them: the number, and whether arithmetic made it.

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
