//! Stores SMT-LIB 2 terms in an arena with hash consing, simplifies them on creation, and writes them as text.
//!
//! Integers are the solver's unbounded ones; callers add the limits of 64 bits. Strings are the solver's, whose characters end at
//! `0x2FFFF`; [`super::regular`] explains why that loses nothing.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::rc::Rc;

use super::literal::{written_int, written_text};

mod numbers;
mod texts;

/// A term, as an index into its [`Terms`].
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(super) struct Term(u32);

/// The sort of a term.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) enum Sort {
    Bool,
    Int,
    Text,
}

impl Sort {
    const fn name(self) -> &'static str {
        match self {
            Self::Bool => "Bool",
            Self::Int => "Int",
            Self::Text => "String",
        }
    }
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
enum Shape {
    Bool(bool),
    Int(i128),
    Text(Box<str>),
    Variable(u32, Sort),
    Apply(Op, Box<[Term]>),
}

/// A function of an SMT-LIB theory, by its name there.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
enum Op {
    Plain(&'static str, Sort),
    /// Membership of a string in a regular language, given in the solver's notation.
    InLanguage(Box<str>),
}

/// A constant that occurs in a query.
#[derive(Clone, Debug)]
pub(super) enum Constant {
    Int(i128),
    Text(String),
}

/// All terms of a query.
#[derive(Debug, Default)]
pub(super) struct Terms {
    shapes: Vec<Rc<Shape>>,
    known: HashMap<Rc<Shape>, Term>,
    variables: u32,
    /// An estimate of the memory used.
    bytes: usize,
}

/// Bytes per term beside its operands and strings: its shape with two reference counts, and its entries in the list and the hash table,
/// with spare capacity.
const EACH: usize =
    size_of::<Shape>() + 2 * size_of::<usize>() + 2 * size_of::<usize>() + 3 * size_of::<(usize, Term)>();

impl Shape {
    /// Returns the bytes of its operands and strings.
    const fn payload(&self) -> usize {
        match self {
            Self::Bool(_) | Self::Int(_) | Self::Variable(..) => 0,
            Self::Text(text) => text.len(),
            Self::Apply(Op::Plain(..), parts) => size_of_val(&**parts),
            Self::Apply(Op::InLanguage(language), parts) => {
                language.len().saturating_add(size_of_val(&**parts))
            }
        }
    }
}

impl Terms {
    fn make(&mut self, shape: Shape) -> Term {
        if let Some(term) = self.known.get(&shape) {
            return *term;
        }
        let term = Term(u32::try_from(self.shapes.len()).unwrap_or(u32::MAX));
        self.charge(EACH.saturating_add(shape.payload()));
        let shape = Rc::new(shape);
        self.shapes.push(Rc::clone(&shape));
        self.known.insert(shape, term);
        term
    }

    /// Adds the memory of something built from terms.
    pub(super) const fn charge(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Returns the estimated memory use in bytes.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    fn shape(&self, term: Term) -> Option<&Shape> {
        self.shapes.get(term.0 as usize).map(|shape| &**shape)
    }

    pub(super) fn bool(&mut self, value: bool) -> Term {
        self.make(Shape::Bool(value))
    }

    pub(super) fn int(&mut self, value: impl Into<i128>) -> Term {
        self.make(Shape::Int(value.into()))
    }

    pub(super) fn text(&mut self, value: &str) -> Term {
        self.make(Shape::Text(value.into()))
    }

    /// Creates an unconstrained variable.
    pub(super) fn variable(&mut self, sort: Sort) -> Term {
        let number = self.variables;
        self.variables = number.saturating_add(1);
        self.make(Shape::Variable(number, sort))
    }

    pub(super) fn known_bool(&self, term: Term) -> Option<bool> {
        match self.shape(term) {
            Some(Shape::Bool(value)) => Some(*value),
            _ => None,
        }
    }

    pub(super) fn known_int(&self, term: Term) -> Option<i128> {
        match self.shape(term) {
            Some(Shape::Int(value)) => Some(*value),
            _ => None,
        }
    }

    pub(super) fn known_text(&self, term: Term) -> Option<&str> {
        match self.shape(term) {
            Some(Shape::Text(value)) => Some(value),
            _ => None,
        }
    }

    fn apply(&mut self, name: &'static str, sort: Sort, parts: &[Term]) -> Term {
        self.make(Shape::Apply(Op::Plain(name, sort), parts.into()))
    }

    pub(super) fn not(&mut self, term: Term) -> Term {
        match self.shape(term) {
            Some(Shape::Bool(value)) => {
                let value = !*value;
                self.bool(value)
            }
            Some(Shape::Apply(Op::Plain("not", _), parts)) => parts.first().copied().unwrap_or(term),
            _ => self.apply("not", Sort::Bool, &[term]),
        }
    }

    pub(super) fn and(&mut self, parts: &[Term]) -> Term {
        self.junction("and", parts, false)
    }

    pub(super) fn or(&mut self, parts: &[Term]) -> Term {
        self.junction("or", parts, true)
    }

    /// Builds `and` or `or`; an operand equal to `decides` decides the result.
    fn junction(&mut self, name: &'static str, parts: &[Term], decides: bool) -> Term {
        let mut open: BTreeSet<Term> = BTreeSet::new();
        for part in parts {
            match self.known_bool(*part) {
                Some(value) if value == decides => return *part,
                Some(_) => {}
                None => {
                    open.insert(*part);
                }
            }
        }
        for part in &open {
            if let Some(Shape::Apply(Op::Plain("not", _), inner)) = self.shape(*part)
                && inner.first().is_some_and(|inner| open.contains(inner))
            {
                return self.bool(decides);
            }
        }
        let open: Vec<Term> = open.into_iter().collect();
        match open.as_slice() {
            [] => self.bool(!decides),
            [one] => *one,
            several => self.apply(name, Sort::Bool, several),
        }
    }

    pub(super) fn implies(&mut self, premise: Term, conclusion: Term) -> Term {
        let not = self.not(premise);
        self.or(&[not, conclusion])
    }

    fn sort(&self, term: Term) -> Sort {
        match self.shape(term) {
            None | Some(Shape::Bool(_)) => Sort::Bool,
            Some(Shape::Int(_)) => Sort::Int,
            Some(Shape::Text(_)) => Sort::Text,
            Some(Shape::Variable(_, sort) | Shape::Apply(Op::Plain(_, sort), _)) => *sort,
            Some(Shape::Apply(Op::InLanguage(_), _)) => Sort::Bool,
        }
    }

    pub(super) fn ite(&mut self, condition: Term, yes: Term, no: Term) -> Term {
        if yes == no {
            return yes;
        }
        match (self.known_bool(condition), self.known_bool(yes), self.known_bool(no)) {
            (Some(true), ..) => yes,
            (Some(false), ..) => no,
            (_, Some(true), _) => self.or(&[condition, no]),
            (_, Some(false), _) => {
                let not = self.not(condition);
                self.and(&[not, no])
            }
            (_, _, Some(false)) => self.and(&[condition, yes]),
            (_, _, Some(true)) => self.implies(condition, yes),
            _ => {
                let sort = self.sort(yes);
                self.apply("ite", sort, &[condition, yes, no])
            }
        }
    }

    pub(super) fn eq(&mut self, left: Term, right: Term) -> Term {
        if left == right {
            return self.bool(true);
        }
        match (self.shape(left), self.shape(right)) {
            (Some(Shape::Int(_) | Shape::Text(_)), Some(Shape::Int(_) | Shape::Text(_))) => self.bool(false),
            (Some(Shape::Bool(value)), _) => {
                if *value {
                    right
                } else {
                    self.not(right)
                }
            }
            (_, Some(Shape::Bool(value))) => {
                if *value {
                    left
                } else {
                    self.not(left)
                }
            }
            _ => self.apply("=", Sort::Bool, &[left.min(right), left.max(right)]),
        }
    }

    /// Returns the operands of an `ite` term.
    pub(super) fn as_choice(&self, term: Term) -> Option<(Term, Term, Term)> {
        match self.shape(term) {
            Some(Shape::Apply(Op::Plain("ite", _), parts)) => match **parts {
                [condition, yes, no] => Some((condition, yes, no)),
                _ => None,
            },
            _ => None,
        }
    }

    /// Reports whether an equation of two terms was ever created.
    pub(super) fn are_compared(&self, one: Term, other: Term) -> bool {
        let parts = [one.min(other), one.max(other)].into();
        self.known.contains_key(&Shape::Apply(Op::Plain("=", Sort::Bool), parts))
    }

    /// Returns the strings whose content the terms inspect, beyond equality and length.
    pub(super) fn looked_into(&self, roots: &[Term]) -> BTreeSet<Term> {
        let mut found = BTreeSet::new();
        for term in self.all_of(roots) {
            match self.shape(term) {
                Some(Shape::Apply(Op::Plain("=" | "ite" | "str.len", _), _)) => {}
                Some(Shape::Apply(_, parts)) => found.extend(parts),
                _ => {}
            }
        }
        found
    }

    /// Writes declarations and definitions of all subterms in order; afterwards each term can be used by its name.
    pub(super) fn write(&self, roots: &[Term], script: &mut String) {
        self.write_with(roots, script, &|_, _| None);
    }

    /// Writes them with values for some variables.
    pub(super) fn write_with(
        &self,
        roots: &[Term],
        script: &mut String,
        value: &dyn Fn(Term, &str) -> Option<String>,
    ) {
        // Operands are created before the terms that use them.
        for term in self.all_of(roots) {
            match self.shape(term) {
                Some(Shape::Variable(_, sort)) => {
                    let name = self.name(term);
                    let _ = match value(term, &name) {
                        Some(value) => writeln!(script, "(define-fun {name} () {} {value})", sort.name()),
                        None => writeln!(script, "(declare-const {name} {})", sort.name()),
                    };
                }
                Some(Shape::Apply(op, parts)) => {
                    let parts: Vec<String> = parts.iter().map(|part| self.name(*part)).collect();
                    let (name, after) = match op {
                        Op::Plain(name, _) => (*name, String::new()),
                        Op::InLanguage(language) => ("str.in_re", format!(" {language}")),
                    };
                    let sort = self.sort(term).name();
                    let _ = writeln!(
                        script,
                        "(define-fun {} () {sort} ({name} {}{after}))",
                        self.name(term),
                        parts.join(" ")
                    );
                }
                None | Some(Shape::Bool(_) | Shape::Int(_) | Shape::Text(_)) => {}
            }
        }
    }

    /// Returns the name of a term in the script.
    pub(super) fn name(&self, term: Term) -> String {
        match self.shape(term) {
            None => "false".to_owned(),
            Some(Shape::Bool(value)) => value.to_string(),
            Some(Shape::Int(value)) => written_int(*value),
            Some(Shape::Text(text)) => written_text(text),
            Some(Shape::Variable(number, _)) => format!("v{number}"),
            Some(Shape::Apply(..)) => format!("t{}", term.0),
        }
    }

    /// Returns the variables of some terms.
    pub(super) fn variables_of(&self, roots: &[Term]) -> Vec<Term> {
        self.all_of(roots)
            .into_iter()
            .filter(|term| matches!(self.shape(*term), Some(Shape::Variable(..))))
            .collect()
    }

    /// Returns the constants of some terms.
    pub(super) fn constants_of(&self, roots: &[Term]) -> Vec<Constant> {
        let mut found = Vec::new();
        for term in self.all_of(roots) {
            match self.shape(term) {
                Some(Shape::Int(value)) => found.push(Constant::Int(*value)),
                Some(Shape::Text(text)) => found.push(Constant::Text(text.to_string())),
                _ => {}
            }
        }
        found
    }

    /// Returns the terms and all their subterms, operands first.
    fn all_of(&self, roots: &[Term]) -> BTreeSet<Term> {
        let mut all: BTreeSet<Term> = BTreeSet::new();
        let mut open = roots.to_vec();
        while let Some(term) = open.pop() {
            if all.insert(term)
                && let Some(Shape::Apply(_, parts)) = self.shape(term)
            {
                open.extend(parts);
            }
        }
        all
    }

    pub(super) fn is_variable(&self, term: Term) -> bool {
        matches!(self.shape(term), Some(Shape::Variable(..)))
    }

    pub(super) fn is_int(&self, term: Term) -> bool {
        self.sort(term) == Sort::Int
    }

    pub(super) fn is_text(&self, term: Term) -> bool {
        self.sort(term) == Sort::Text
    }
}
