//! What is read of the texts of a question.

use super::Undecided;
use super::reader::Reader;
use super::term::Term;

/// What is read of a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    pub(super) reader: Reader,
    pub(super) text: Term,
    /// Whether it is no error.
    pub(super) good: Term,
    /// Billionths, or nanoseconds.
    pub(super) value: Term,
    /// Of a quantity: whether it converts to a whole number, and to which.
    pub(super) is_integer: Term,
    pub(super) integer: Term,
    /// Of a quantity: whether it may have more digits than are written out.
    pub(super) is_far: Term,
}

/// A text with its ASCII letters in one case.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cased {
    pub(super) to_upper: bool,
    pub(super) text: Term,
    pub(super) value: Term,
}

/// What is read in a question.
#[derive(Debug, Default)]
pub(super) struct Readings {
    pub(super) read: Vec<Reading>,
    pub(super) cased: Vec<Cased>,
    /// Which functions are not followed, if an object that is found turns out to be none.
    pub(super) notes: Vec<Undecided>,
}
