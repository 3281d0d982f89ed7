//! What is read of the texts of a question.

use std::rc::Rc;

use super::Undecided;
use super::parser::Parser;
use super::reader::Reader;
use super::term::Term;
use super::zones::Offsets;

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

/// What is made of a text.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Derivation {
    /// Its ASCII letters in one case.
    Lower,
    Upper,
    /// Without white space at its ends.
    Trimmed,
    /// The first match of a pattern.
    Found(Rc<str>),
}

/// A text, and what is made of it.
#[derive(Clone, Debug)]
pub(super) struct Derived {
    pub(super) derivation: Derivation,
    pub(super) text: Term,
    pub(super) value: Term,
}

/// The parts of a text.
#[derive(Clone, Debug)]
pub(super) struct Parsed {
    pub(super) parser: Parser,
    pub(super) text: Term,
    /// Whether it has any.
    pub(super) good: Term,
    /// As [`Parser::sorts`] has them.
    pub(super) parts: Vec<Term>,
}

/// An address of a network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Address {
    pub(super) is_v4: Term,
    /// In the order of addresses; see [`super::parser::number`].
    pub(super) number: Term,
}

/// An address, and how many of its first bits are those of a network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Network {
    pub(super) address: Address,
    pub(super) prefix: Term,
}

/// The first and the last address of a network.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edges {
    pub(super) first: Term,
    pub(super) last: Term,
}

/// Where a part is found last in a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Last {
    pub(super) text: Term,
    pub(super) part: Term,
    pub(super) position: Term,
}

/// What is read in a question.
#[derive(Debug, Default)]
pub(super) struct Readings {
    pub(super) read: Vec<Reading>,
    pub(super) derived: Vec<Derived>,
    pub(super) parsed: Vec<Parsed>,
    pub(super) edges: Vec<(Network, Edges)>,
    pub(super) last: Vec<Last>,
    /// Addresses that are written, each as its text.
    pub(super) written: Vec<(Address, Term)>,
    /// How far a zone is from UTC at an instant that is later than is written out.
    pub(super) offsets: Vec<(Term, Rc<Offsets>, Term)>,
    /// Which functions are not followed, if an object that is found turns out to be none.
    pub(super) notes: Vec<Undecided>,
}
