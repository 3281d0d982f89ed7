//! What parts of an expression come to, as far as it is known without an object.

use std::collections::BTreeSet;

use admit_cel::syntax::{Ast, ExprId};
use serde_json::Value;

use super::field::{FieldPath, Step};

/// How a condition keeps its value when an object is cut down to what the atoms tell of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Truth {
    /// Where it does not hold of what was cut down, it does not hold of the whole.
    pub(super) refusal: bool,
    /// Where it holds of what was cut down, or fails there, it does so of the whole.
    pub(super) truth: bool,
    /// It comes to the same.
    pub(super) exact: bool,
}

impl Truth {
    pub(super) const EXACT: Self = Self { refusal: true, truth: true, exact: true };
    pub(super) const NONE: Self = Self { refusal: false, truth: false, exact: false };

    pub(super) const fn and(self, other: Self) -> Self {
        Self {
            refusal: self.refusal && other.refusal,
            truth: self.truth && other.truth,
            exact: self.exact && other.exact,
        }
    }

    pub(super) const fn not(self) -> Self {
        Self { refusal: self.truth, truth: self.refusal, exact: self.exact }
    }

    pub(super) const fn exact_if(exact: bool) -> Self {
        if exact { Self::EXACT } else { Self::NONE }
    }
}

/// A value that is the same in the whole object and in what is left of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Scalar {
    /// Fields that may have any text, and may be it.
    pub(super) open: BTreeSet<FieldPath>,
    /// The texts that it may be, or have within it, otherwise.
    pub(super) texts: BTreeSet<String>,
    /// It may be texts that are not known.
    pub(super) computed: bool,
}

impl Scalar {
    pub(super) fn of_constant(value: &Value) -> Self {
        let mut scalar = Self::default();
        texts_in(value, &mut scalar.texts);
        scalar
    }

    pub(super) fn or(mut self, other: Self) -> Self {
        self.open.extend(other.open);
        self.texts.extend(other.texts);
        self.computed |= other.computed;
        self
    }
}

fn texts_in(value: &Value, texts: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => drop(texts.insert(text.clone())),
        Value::Array(items) => items.iter().for_each(|item| texts_in(item, texts)),
        Value::Object(fields) => fields.iter().for_each(|(key, value)| {
            texts.insert(key.clone());
            texts_in(value, texts);
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A place of the new or the old object.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Spot {
    pub(super) old: bool,
    pub(super) path: Vec<Step>,
}

impl Spot {
    pub(super) fn below(&self, step: Step) -> Self {
        Self { old: self.old, path: self.path.iter().cloned().chain([step]).collect() }
    }
}

/// A condition on elements of a list.
#[derive(Clone, Debug)]
pub(super) struct Condition<'a> {
    pub(super) ast: &'a Ast,
    pub(super) variable: &'a str,
    pub(super) body: ExprId,
    pub(super) scope: Scope<'a>,
}

/// What names stand for within macros.
pub(super) type Scope<'a> = Vec<(&'a str, Part<'a>)>;

/// What a part of an expression is.
#[derive(Clone, Debug)]
pub(super) enum Part<'a> {
    Constant(Value),
    Scalar(Scalar),
    Condition(Truth),
    /// What stands in a place.
    Spot(Spot),
    /// What may stand in a place, as an optional value.
    Optional(Spot),
    /// Elements of a list that meet all conditions.
    Filtered(Spot, Vec<Condition<'a>>),
    /// How many elements there are; told only whether there is one.
    Emptiness,
    /// One of these, by something that is the same in the whole.
    OneOf(Vec<Self>),
    /// The composed variables of a policy.
    Variables,
    Unknown,
}

impl<'a> Part<'a> {
    pub(super) fn exact_if(exact: bool) -> Self {
        Part::Condition(Truth::exact_if(exact))
    }

    /// One of several, where it is not known which; each is asked.
    pub(super) fn each(self, ask: &mut dyn FnMut(Self) -> Self) -> Self {
        match self {
            Part::OneOf(parts) => Part::OneOf(parts.into_iter().map(|part| part.each(ask)).collect()),
            part => ask(part),
        }
    }

    pub(super) fn constant(&self) -> Option<&Value> {
        match self {
            Part::Constant(value) => Some(value),
            _ => None,
        }
    }
}
