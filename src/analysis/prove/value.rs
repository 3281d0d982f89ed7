//! Values of expressions over objects that may be any: what each is, under which condition.

use std::rc::Rc;

use super::document::{Form, Node, NodeId, World};
use super::term::Term;
use super::view::{View, is_open};
use super::{Undecided, undecided};

/// What an expression comes to.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Outcome {
    /// Whether it is an error; then the value means nothing.
    pub(super) error: Term,
    pub(super) value: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Null,
    Bool(Term),
    Int(Term),
    Text(Term),
    /// An object of the document with declared properties.
    Object(NodeId),
    List(List),
    /// The active entries of a map.
    Map(Map),
    /// Whether there is something in it, and what.
    Optional(Term, Rc<Self>),
    /// One of two, by a condition.
    Choice(Term, Rc<Self>, Rc<Self>),
    Type(&'static str),
    /// A value that is not followed further, and why.
    Unknown(&'static str),
}

/// Items in their order, each under a condition.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct List {
    pub(super) items: Rc<Vec<(Term, Value)>>,
    pub(super) kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Map {
    /// Whether it is there, its key, its value. Keys of entries that are there differ.
    pub(super) entries: Rc<Vec<(Term, Term, Value)>>,
    pub(super) of_document: bool,
}

/// How a list compares.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    /// One that an expression made, or of a document without types.
    Made,
    Atomic,
    Set,
    Keyed(Rc<[Box<str>]>),
}

impl Value {
    pub(super) fn list(items: Vec<(Term, Self)>) -> Self {
        Self::List(List { items: Rc::new(items), kind: Kind::Made })
    }

    const fn is_typed_container(&self) -> bool {
        match self {
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

    /// The value of a node that is there.
    pub(super) fn value_of(&mut self, id: NodeId) -> Result<Value, Undecided> {
        let form = self.force(id)?;
        let node = self.node(id)?.clone();
        let typed = self.view == View::Typed;
        let value = match form {
            Form::Bool(value) => Value::Bool(value),
            Form::Int(value) => Value::Int(value),
            Form::Text(value) => match node.schema.checks.format.as_deref() {
                Some("byte" | "duration" | "date" | "date-time") if typed => {
                    self.guesses.texts.push(value);
                    Value::Unknown("a time, a duration or bytes")
                }
                _ => Value::Text(value),
            },
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
            Form::Any => Value::Unknown("a value of a type that is not followed: number, or none declared"),
        };
        Ok(self.merged(node.null, Value::Null, value))
    }

    fn item(&mut self, id: NodeId) -> Result<(Term, Value), Undecided> {
        let present = self.node(id)?.present;
        Ok((present, self.value_of(id)?))
    }

    /// One of two values.
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

    /// The same outcome where another error comes first.
    pub(super) fn after(&mut self, error: Term, mut outcome: Outcome) -> Outcome {
        outcome.error = self.terms.or(&[error, outcome.error]);
        outcome
    }

    /// Whether it is true, and whether there is an error, which there is too where it is no truth value.
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
            Value::Unknown(what) => return Err(undecided(*what)),
            _ => (self.terms.bool(true), self.terms.bool(false)),
        })
    }

    /// How many of some conditions hold.
    pub(super) fn count(&mut self, conditions: impl IntoIterator<Item = Term>) -> Term {
        let (one, zero) = (self.terms.int(1), self.terms.int(0));
        let counted: Vec<Term> =
            conditions.into_iter().map(|holds| self.terms.ite(holds, one, zero)).collect();
        self.terms.sum(&counted)
    }

    /// Whether two values are equal, and whether comparing them is an error.
    pub(super) fn equal(&mut self, left: &Value, right: &Value) -> Result<(Term, Term), Undecided> {
        self.check_size()?;
        let no = self.terms.bool(false);
        Ok(match (left, right) {
            (Value::Choice(condition, yes, other), _) => {
                let yes = self.equal(yes, right)?;
                let other = self.equal(other, right)?;
                self.either(*condition, yes, other)
            }
            (_, Value::Choice(condition, yes, other)) => {
                let yes = self.equal(left, yes)?;
                let other = self.equal(left, other)?;
                self.either(*condition, yes, other)
            }
            (Value::Null, Value::Null) => (no, self.terms.bool(true)),
            (Value::Null, _) | (_, Value::Null) => (no, no),
            (Value::Unknown(what), _) | (_, Value::Unknown(what)) => return Err(undecided(*what)),
            (Value::Bool(a), Value::Bool(b))
            | (Value::Int(a), Value::Int(b))
            | (Value::Text(a), Value::Text(b)) => (no, self.terms.eq(*a, *b)),
            (Value::Type(a), Value::Type(b)) => (no, self.terms.bool(a == b)),
            (Value::Optional(a, x), Value::Optional(b, y)) => {
                let (error, equal) = self.equal(x, y)?;
                let both = self.terms.and(&[*a, *b]);
                let same = self.terms.eq(*a, *b);
                let equal = self.terms.ite(both, equal, same);
                (self.terms.and(&[both, error]), equal)
            }
            (Value::List(a), Value::List(b)) => (no, self.equal_lists(a, b)?),
            (Value::Map(a), Value::Map(b)) => (no, self.equal_maps(a, b)?),
            (Value::Object(a), Value::Object(b)) => (no, self.equal_objects(*a, *b)?),
            (Value::Object(_), Value::Map(_)) | (Value::Map(_), Value::Object(_)) => {
                return Err(undecided("an object compared with a map"));
            }
            (Value::Object(_), _) => return Err(undecided("an object compared with what is none")),
            (left, _) if left.is_typed_container() => (self.terms.bool(true), no),
            _ => (no, no),
        })
    }

    fn either(&mut self, condition: Term, yes: (Term, Term), no: (Term, Term)) -> (Term, Term) {
        (self.terms.ite(condition, yes.0, no.0), self.terms.ite(condition, yes.1, no.1))
    }

    /// Equality of what cannot fail to compare.
    pub(super) fn surely_equal(&mut self, left: &Value, right: &Value) -> Result<Term, Undecided> {
        let (error, equal) = self.equal(left, right)?;
        if self.terms.known_bool(error) != Some(false) {
            return Err(undecided("a comparison of parts that may fail"));
        }
        Ok(equal)
    }

    fn equal_lists(&mut self, left: &List, right: &List) -> Result<Term, Undecided> {
        let (left_size, right_size) = (
            self.count(left.items.iter().map(|(there, _)| *there)),
            self.count(right.items.iter().map(|(there, _)| *there)),
        );
        let mut parts = vec![self.terms.eq(left_size, right_size)];
        match &left.kind {
            Kind::Made | Kind::Atomic => {
                let (before_left, before_right) = (self.positions(left), self.positions(right));
                for ((there, item), at) in left.items.iter().zip(&before_left) {
                    for ((other_there, other), other_at) in right.items.iter().zip(&before_right) {
                        let same_place = self.terms.eq(*at, *other_at);
                        let both = self.terms.and(&[*there, *other_there, same_place]);
                        if self.terms.known_bool(both) == Some(false) {
                            continue;
                        }
                        let equal = self.surely_equal(item, other)?;
                        parts.push(self.terms.implies(both, equal));
                    }
                }
            }
            Kind::Set => {
                for (there, item) in right.items.iter() {
                    let mut found = Vec::new();
                    for (other_there, other) in left.items.iter() {
                        let equal = self.surely_equal(other, item)?;
                        found.push(self.terms.and(&[*other_there, equal]));
                    }
                    let found = self.terms.or(&found);
                    parts.push(self.terms.implies(*there, found));
                }
            }
            Kind::Keyed(keys) => {
                for (there, item) in right.items.iter() {
                    let mut found = Vec::new();
                    for (other_there, other) in left.items.iter() {
                        let same = self.same_keys(keys, other, item)?;
                        let equal = self.surely_equal(other, item)?;
                        found.push(self.terms.and(&[*other_there, same, equal]));
                    }
                    let found = self.terms.or(&found);
                    parts.push(self.terms.implies(*there, found));
                }
            }
        }
        Ok(self.terms.and(&parts))
    }

    fn same_keys(&mut self, keys: &[Box<str>], left: &Value, right: &Value) -> Result<Term, Undecided> {
        let (Value::Object(left), Value::Object(right)) = (left, right) else {
            return Err(undecided("items of a map list that are no objects"));
        };
        let mut parts = Vec::new();
        for key in keys {
            let (Some(a), Some(b)) = (self.property(*left, key)?, self.property(*right, key)?) else {
                return Err(undecided("a key of a map list that is not declared"));
            };
            for id in [a, b] {
                let (present, null) = (self.node(id)?.present, self.node(id)?.null);
                let is_set = self.terms.known_bool(present) == Some(true);
                if !is_set || self.terms.known_bool(null) != Some(false) {
                    return Err(undecided("a key of a map list that may be absent"));
                }
            }
            let (a, b) = (self.value_of(a)?, self.value_of(b)?);
            parts.push(self.surely_equal(&a, &b)?);
        }
        Ok(self.terms.and(&parts))
    }

    /// How many items are before each.
    pub(super) fn positions(&mut self, list: &List) -> Vec<Term> {
        let (mut before, one) = (self.terms.int(0), self.terms.int(1));
        let mut positions = Vec::new();
        for (there, _) in list.items.iter() {
            positions.push(before);
            let next = self.terms.add(before, one);
            before = self.terms.ite(*there, next, before);
        }
        positions
    }

    fn equal_maps(&mut self, left: &Map, right: &Map) -> Result<Term, Undecided> {
        let (left_size, right_size) = (
            self.count(left.entries.iter().map(|(there, ..)| *there)),
            self.count(right.entries.iter().map(|(there, ..)| *there)),
        );
        let mut parts = vec![self.terms.eq(left_size, right_size)];
        for (there, key, value) in left.entries.iter() {
            let mut found = Vec::new();
            for (other_there, other_key, other) in right.entries.iter() {
                let equal = self.surely_equal(value, other)?;
                let same = self.terms.eq(*key, *other_key);
                found.push(self.terms.and(&[*other_there, same, equal]));
            }
            let found = self.terms.or(&found);
            parts.push(self.terms.implies(*there, found));
        }
        Ok(self.terms.and(&parts))
    }

    /// Objects of one schema, all of whose fields are declared.
    fn equal_objects(&mut self, left: NodeId, right: NodeId) -> Result<Term, Undecided> {
        if left == right {
            return Ok(self.terms.bool(true));
        }
        let (a, b) = (self.node(left)?.clone(), self.node(right)?.clone());
        let is_closed = !is_open(a.schema) && !a.is_metadata;
        if !std::ptr::eq(a.schema, b.schema) || !is_closed {
            return Err(undecided("objects that may have undeclared fields, compared"));
        }
        let typed = self.view == View::Typed;
        let mut parts = Vec::new();
        if typed {
            let uncounted = || undecided("objects that may have undeclared fields, compared");
            let (x, y) = (self.count_properties(left)?, self.count_properties(right)?);
            parts.push(self.terms.eq(x.ok_or_else(uncounted)?, y.ok_or_else(uncounted)?));
        }
        for name in a.schema.properties.keys() {
            let (Some(x), Some(y)) = (self.property(left, name)?, self.property(right, name)?) else {
                return Err(undecided("objects with untyped fields, compared"));
            };
            let (child, other) = (self.node(x)?.clone(), self.node(y)?.clone());
            let (x, y) = (self.value_of(x)?, self.value_of(y)?);
            if typed {
                // What is null counts as a field, and is an absent one when it is compared.
                let (x, y) = (without_null(x, child.null), without_null(y, other.null));
                let mine = self.is_set(&child);
                let theirs = self.is_set(&other);
                let equal = self.surely_equal(&x, &y)?;
                let equal = self.terms.implies(mine, equal);
                let same = self.terms.eq(mine, theirs);
                let holds = self.terms.and(&[same, equal]);
                parts.push(self.terms.implies(child.present, holds));
            } else {
                let equal = self.surely_equal(&x, &y)?;
                parts.push(self.terms.eq(child.present, other.present));
                parts.push(self.terms.implies(child.present, equal));
            }
        }
        Ok(self.terms.and(&parts))
    }

    /// Whether a field is there and not null.
    fn is_set(&mut self, node: &Node<'_>) -> Term {
        let not_null = self.terms.not(node.null);
        self.terms.and(&[node.present, not_null])
    }
}

/// The value where it is not null.
pub(super) fn without_null(value: Value, null: Term) -> Value {
    match value {
        Value::Choice(condition, _, other) if condition == null => (*other).clone(),
        value => value,
    }
}
