//! Holds the results of parsing, deriving and searching strings in a query.

use std::rc::Rc;

use super::Undecided;
use super::parser::Parser;
use super::reader::Reader;
use super::term::Term;
use super::zones::Offsets;

/// The result of parsing a string to a number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    pub(super) reader: Reader,
    pub(super) text: Term,
    /// Whether the string is valid.
    pub(super) good: Term,
    /// The value, in billionths or nanoseconds.
    pub(super) value: Term,
    /// For a quantity: whether it converts to an integer, and to which.
    pub(super) is_integer: Term,
    pub(super) integer: Term,
    /// For a quantity: whether it may have more digits than are modelled.
    pub(super) is_far: Term,
}

/// A function from strings to strings.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Derivation {
    /// Converts ASCII letters to one case.
    Lower,
    Upper,
    /// Trims white space at both ends.
    Trimmed,
    /// Finds the first match of a pattern.
    Found(Rc<str>),
}

/// A string, and the result of a function on it.
#[derive(Clone, Debug)]
pub(super) struct Derived {
    pub(super) derivation: Derivation,
    pub(super) text: Term,
    pub(super) value: Term,
}

/// The result of parsing a string into parts.
#[derive(Clone, Debug)]
pub(super) struct Parsed {
    pub(super) parser: Parser,
    pub(super) text: Term,
    /// Whether the string is valid.
    pub(super) good: Term,
    /// The parts, of the sorts that [`Parser::sorts`] lists.
    pub(super) parts: Vec<Term>,
}

/// An IP address.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Address {
    pub(super) is_v4: Term,
    /// Its number, in address order; see [`super::parser::number`].
    pub(super) number: Term,
}

/// A network: an address and a prefix length.
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

/// The last position of a substring in a string.
#[derive(Clone, Copy, Debug)]
pub(super) struct Last {
    pub(super) text: Term,
    pub(super) part: Term,
    pub(super) position: Term,
}

/// All results in a query.
#[derive(Debug, Default)]
pub(super) struct Readings {
    pub(super) read: Vec<Reading>,
    pub(super) derived: Vec<Derived>,
    pub(super) parsed: Vec<Parsed>,
    pub(super) edges: Vec<(Network, Edges)>,
    pub(super) last: Vec<Last>,
    /// Addresses that are formatted, each with its string.
    pub(super) written: Vec<(Address, Term)>,
    /// Offsets of zones from UTC at timestamps later than the table of changes covers.
    pub(super) offsets: Vec<(Term, Rc<Offsets>, Term)>,
    /// Functions modelled approximately: the reasons to report if a counterexample is not confirmed.
    pub(super) notes: Vec<Undecided>,
}
