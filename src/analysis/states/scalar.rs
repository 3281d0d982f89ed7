//! Represents values of subexpressions, as far as they are known without an object.

use std::collections::BTreeSet;

use admit_cel::syntax::{Ast, ExprId};
use serde_json::Value;

use super::field::{FieldPath, Step};

/// How the value of a condition on a reduced object carries over to the whole one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Truth {
    /// If it is false or fails for the reduced object, it does not hold for the whole one.
    pub(super) refusal: bool,
    /// If it holds or fails for the reduced object, it does so for the whole one.
    pub(super) truth: bool,
    /// It has the same value for both.
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

/// A value that is the same for the whole object and for the reduced one.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Scalar {
    /// Free string fields whose value it may be.
    pub(super) open: BTreeSet<FieldPath>,
    /// The other strings that it may be or contain.
    pub(super) texts: BTreeSet<String>,
    /// Whether it may contain unknown strings.
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

/// A path in the new or the old object.
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

/// The values of macro variables.
pub(super) type Scope<'a> = Vec<(&'a str, Part<'a>)>;

/// What a subexpression denotes.
#[derive(Clone, Debug)]
pub(super) enum Part<'a> {
    Constant(Value),
    Scalar(Scalar),
    Condition(Truth),
    /// The value at a path.
    Spot(Spot),
    /// The value at a path, as an optional.
    Optional(Spot),
    /// The elements of a list that meet all conditions.
    Filtered(Spot, Vec<Condition<'a>>),
    /// The number of elements, of which only whether it is zero is known.
    Emptiness,
    /// One of these values, selected by something that is the same for both objects.
    OneOf(Vec<Self>),
    /// The `variables` of a policy.
    Variables,
    Unknown,
}

impl<'a> Part<'a> {
    pub(super) fn exact_if(exact: bool) -> Self {
        Part::Condition(Truth::exact_if(exact))
    }

    /// Applies a function to each alternative.
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
