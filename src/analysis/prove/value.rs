//! Represents CEL values of expressions over arbitrary objects: each possible value with its condition.

use std::rc::Rc;

use super::document::{Form, NodeId, World};
use super::named::Format;
use super::readings::{Address, Network};
use super::term::Term;
use super::view::{UNDECLARED, View};
use super::{Undecided, undecided};

/// What is said of nulls that were allowed once.
pub(super) const NULLS: &str = "nulls among items";

/// The result of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Outcome {
    /// Whether it is an error; then the value is meaningless.
    pub(super) error: Term,
    pub(super) value: Value,
}

/// The reason reported where an optional holds something else than what was put into it.
pub(super) const HELD_OTHERWISE: &str = "what an optional holds, without its declared type";

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Null,
    Bool(Term),
    Int(Term),
    Text(Term),
    /// Nanoseconds since 1970.
    Instant(Term),
    /// Nanoseconds.
    Span(Term),
    Quantity(Quantity),
    Address(Address),
    Network(Network),
    Url(Url),
    /// A named format of strings.
    Format(Format),
    /// A field whose string violates its format: reading it is an error.
    Unreadable,
    /// An object with declared properties.
    Object(NodeId),
    List(List),
    /// A map: its entries that are present.
    Map(Map),
    /// An optional: whether it has a value, and the value.
    Optional(Term, Rc<Self>),
    /// One of two values, by a condition.
    Choice(Term, Rc<Self>, Rc<Self>),
    Type(&'static str),
    /// A value that is not modelled, and why.
    Unknown(Why),
}

/// Why a value is not modelled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Why {
    what: &'static str,
    /// Whether reading the value may be an error, even where nothing is done with it.
    may_fail: bool,
}

impl Why {
    pub(super) fn undecided(self) -> Undecided {
        undecided(self.what)
    }
}

/// A quantity in billionths.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Quantity {
    pub(super) value: Term,
    /// Whether it converts to an integer, and to which; `None` for results of arithmetic.
    pub(super) integer: Option<(Term, Term)>,
    /// Whether it may have more digits than are modelled.
    pub(super) is_far: Term,
}

/// The parts of a URL.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Url {
    /// The string parts, in the order of [`super::parser::URL_TEXTS`].
    pub(super) texts: [Term; 5],
    /// The number of query keys.
    pub(super) count: Term,
}

/// The items of a list in order, each with the condition of its presence.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct List {
    pub(super) items: Rc<Vec<(Term, Value)>>,
    pub(super) kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Map {
    /// Presence, key and value of each entry. Keys of present entries are distinct.
    pub(super) entries: Rc<Vec<(Term, Term, Value)>>,
    pub(super) of_document: bool,
}

/// How a list is compared.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    /// A list that an expression creates, or one of an untyped object.
    Made,
    Atomic,
    Set,
    Keyed(Rc<[Box<str>]>),
}

impl Value {
    /// Returns a value that is not modelled, and that can be read.
    pub(super) const fn unknown(what: &'static str) -> Self {
        Self::Unknown(Why { what, may_fail: false })
    }

    /// Reports whether an optional holds the value otherwise than it is, once an attribute starts from it: what has declared types as
    /// plain JSON, values of Kubernetes' libraries not at all.
    pub(super) fn is_held_otherwise(&self, view: View) -> bool {
        match self {
            Self::Object(_) => view == View::Typed,
            Self::List(list) => list.kind != Kind::Made,
            Self::Map(map) => map.of_document,
            Self::Quantity(_) | Self::Address(_) | Self::Network(_) | Self::Url(_) => true,
            Self::Type(_) | Self::Optional(..) => true,
            Self::Choice(_, one, other) => one.is_held_otherwise(view) || other.is_held_otherwise(view),
            _ => false,
        }
    }

    /// Reports whether the value may be an optional that holds such a one.
    pub(super) fn holds_otherwise(&self, view: View) -> bool {
        match self {
            Self::Optional(_, inner) => inner.is_held_otherwise(view),
            Self::Choice(_, one, other) => one.holds_otherwise(view) || other.holds_otherwise(view),
            _ => false,
        }
    }

    /// Returns a value that is not modelled, and that reading may find to be an error.
    pub(super) const fn doubtful(what: &'static str) -> Self {
        Self::Unknown(Why { what, may_fail: true })
    }

    /// Returns why it is not known whether the value can be read. Items of lists and maps are read by themselves.
    pub(super) fn doubt(&self) -> Option<Why> {
        match self {
            Self::Unknown(why) => Some(*why).filter(|why| why.may_fail),
            Self::Choice(_, yes, no) => yes.doubt().or_else(|| no.doubt()),
            Self::Optional(_, inner) => inner.doubt(),
            _ => None,
        }
    }

    pub(super) fn list(items: Vec<(Term, Self)>) -> Self {
        Self::List(List { items: Rc::new(items), kind: Kind::Made })
    }

    /// Whether one of the values that this may be is such a one.
    pub(super) fn may_be(&self, is_one: &dyn Fn(&Self) -> bool) -> bool {
        match self {
            Self::Choice(_, yes, no) => yes.may_be(is_one) || no.may_be(is_one),
            value => is_one(value),
        }
    }

    /// Whether it is a list, a map or an object.
    pub(super) const fn is_composed(&self) -> bool {
        matches!(self, Self::List(_) | Self::Map(_) | Self::Object(_))
    }

    /// Reports whether comparing it with a value of another type is an error.
    pub(super) const fn is_strict(&self) -> bool {
        match self {
            Self::Quantity(_) | Self::Address(_) | Self::Network(_) | Self::Url(_) => true,
            Self::List(list) => !matches!(list.kind, Kind::Made),
            Self::Map(map) => map.of_document,
            _ => false,
        }
    }
}

impl<'s> World<'s> {
    pub(super) fn good(&mut self, value: Value) -> Outcome {
        Outcome { error: self.terms.bool(false), value }
    }

    pub(super) fn failed(&mut self) -> Outcome {
        Outcome { error: self.terms.bool(true), value: Value::Null }
    }

    /// Returns the value of a present node.
    pub(super) fn value_of(&mut self, id: NodeId) -> Result<Value, Undecided> {
        let value = self.value_of_its_type(id)?;
        let wrong = self.wrong_type(id);
        Ok(self.merged(wrong, Value::doubtful("a value of a type other than the declared one"), value))
    }

    /// Returns whether an accepted node may have another type than declared, as stored values may.
    pub(super) fn wrong_type(&mut self, id: NodeId) -> Term {
        let no = self.terms.bool(false);
        let is_let_through = self.keeps_wrong_types;
        self.mismatches.get(&id).copied().filter(|_| is_let_through).unwrap_or(no)
    }

    /// Returns the value of a present node that has its declared type.
    pub(super) fn value_of_its_type(&mut self, id: NodeId) -> Result<Value, Undecided> {
        let form = self.force(id)?;
        let node = self.node(id)?.clone();
        let typed = self.view == View::Typed;
        let value = match form {
            Form::Map { .. } if self.partial.contains(&id) => Value::unknown(UNDECLARED),
            Form::Map { .. } | Form::List { .. } if self.may_hold_anything(id) => Value::unknown(UNDECLARED),
            Form::Bool(value) => Value::Bool(value),
            Form::Int(value) => Value::Int(value),
            Form::Text(value) if typed => self.formatted(value, &node)?,
            Form::Text(value) => Value::Text(value),
            Form::IntOrText { is_int, int, text } => {
                Value::Choice(is_int, Rc::new(Value::Int(int)), Rc::new(Value::Text(text)))
            }
            Form::Object(_) => Value::Object(id),
            Form::List { items, .. } => {
                let items = items.into_iter().map(|item| self.item(item)).collect::<Result<_, _>>()?;
                let kind = match &node.schema.list_type {
                    _ if !typed => Kind::Made,
                    Some(admit_policy::schema::ListType::Set) => Kind::Set,
                    Some(admit_policy::schema::ListType::Map) => {
                        Kind::Keyed(node.schema.list_map_keys.clone().into())
                    }
                    Some(_) | None => Kind::Atomic,
                };
                Value::List(List { items: Rc::new(items), kind })
            }
            Form::Map { entries, .. } => {
                let mut found = Vec::new();
                for (key, entry) in entries {
                    let (is_there, value) = self.item(entry)?;
                    found.push((is_there, key, value));
                }
                Value::Map(Map { entries: Rc::new(found), of_document: typed })
            }
            Form::Any => Value::unknown("a value of an unsupported type: `number`, or no declared type"),
        };
        Ok(self.merged(node.null, Value::Null, value))
    }

    fn item(&mut self, id: NodeId) -> Result<(Term, Value), Undecided> {
        let node = self.node(id)?.clone();
        let present = node.present;
        let value = self.value_of(id)?;
        // Nulls that were allowed once may be stored.
        let value = match self.terms.known_bool(node.null) {
            Some(false) => value,
            _ if node.schema.nullable => value,
            _ => self.merged(node.null, Value::doubtful(NULLS), without_null(value, node.null)),
        };
        if value.may_be_unreadable() {
            return Ok((present, Value::doubtful("list items that are timestamps")));
        }
        Ok((present, value))
    }

    /// Selects one of two values by a condition.
    pub(super) fn merged(&mut self, condition: Term, yes: Value, no: Value) -> Value {
        match self.terms.known_bool(condition) {
            Some(true) => return yes,
            Some(false) => return no,
            None => {}
        }
        if yes == no {
            return yes;
        }
        match (&yes, &no) {
            (Value::Bool(a), Value::Bool(b)) => Value::Bool(self.terms.ite(condition, *a, *b)),
            (Value::Int(a), Value::Int(b)) => Value::Int(self.terms.ite(condition, *a, *b)),
            (Value::Text(a), Value::Text(b)) => Value::Text(self.terms.ite(condition, *a, *b)),
            (Value::Instant(a), Value::Instant(b)) => Value::Instant(self.terms.ite(condition, *a, *b)),
            (Value::Span(a), Value::Span(b)) => Value::Span(self.terms.ite(condition, *a, *b)),
            (Value::Optional(a, x), Value::Optional(b, y)) => {
                let is_there = self.terms.ite(condition, *a, *b);
                let value = match (self.terms.known_bool(*a), self.terms.known_bool(*b)) {
                    (Some(false), _) => (**y).clone(),
                    (_, Some(false)) => (**x).clone(),
                    _ => self.merged(condition, (**x).clone(), (**y).clone()),
                };
                Value::Optional(is_there, Rc::new(value))
            }
            (Value::List(a), Value::List(b)) if a.kind == b.kind => {
                let all = a.items.len().saturating_add(b.items.len());
                self.terms.charge(all.saturating_mul(size_of::<(Term, Value)>()));
                let shared = a.items.iter().zip(b.items.iter()).take_while(|(x, y)| x == y).count();
                let mut items: Vec<(Term, Value)> = a.items.iter().take(shared).cloned().collect();
                for (there, value) in a.items.iter().skip(shared) {
                    items.push((self.terms.and(&[condition, *there]), value.clone()));
                }
                let otherwise = self.terms.not(condition);
                for (there, value) in b.items.iter().skip(shared) {
                    items.push((self.terms.and(&[otherwise, *there]), value.clone()));
                }
                Value::List(List { items: Rc::new(items), kind: a.kind.clone() })
            }
            _ => Value::Choice(condition, Rc::new(yes), Rc::new(no)),
        }
    }

    pub(super) fn choose(&mut self, condition: Term, yes: Outcome, no: Outcome) -> Outcome {
        let error = self.terms.ite(condition, yes.error, no.error);
        let value = match (self.terms.known_bool(yes.error), self.terms.known_bool(no.error)) {
            (Some(true), _) => no.value,
            (_, Some(true)) => yes.value,
            _ => self.merged(condition, yes.value, no.value),
        };
        Outcome { error, value }
    }

    /// Returns the outcome where another error takes precedence.
    pub(super) fn after(&mut self, error: Term, mut outcome: Outcome) -> Outcome {
        outcome.error = self.terms.or(&[error, outcome.error]);
        outcome
    }

    /// Returns whether it is true, and whether it is an error; a value that is not a boolean is one too.
    pub(super) fn truth(&mut self, outcome: &Outcome) -> Result<(Term, Term), Undecided> {
        let (error, value) = self.truth_of(&outcome.value)?;
        Ok((self.terms.or(&[outcome.error, error]), value))
    }

    fn truth_of(&mut self, value: &Value) -> Result<(Term, Term), Undecided> {
        Ok(match value {
            Value::Bool(value) => (self.terms.bool(false), *value),
            Value::Choice(condition, yes, no) => {
                let (yes_error, yes) = self.truth_of(yes)?;
                let (no_error, no) = self.truth_of(no)?;
                (self.terms.ite(*condition, yes_error, no_error), self.terms.ite(*condition, yes, no))
            }
            Value::Unknown(what) => return Err(what.undecided()),
            _ => (self.terms.bool(true), self.terms.bool(false)),
        })
    }

    /// Counts how many conditions hold.
    pub(super) fn count(&mut self, conditions: impl IntoIterator<Item = Term>) -> Term {
        let (one, zero) = (self.terms.int(1), self.terms.int(0));
        let counted: Vec<Term> =
            conditions.into_iter().map(|holds| self.terms.ite(holds, one, zero)).collect();
        self.terms.sum(&counted)
    }
}

/// Returns the value on the assumption that it is not null.
pub(super) fn without_null(value: Value, null: Term) -> Value {
    match value {
        Value::Choice(condition, _, other) if condition == null => (*other).clone(),
        value => value,
    }
}
