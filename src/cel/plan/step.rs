//! Defines the steps of a program, which the planner creates and the evaluator runs.
//!
//! An *attribute* is cel-go's word for a variable or other operand with the fields and indexes selected from it; one
//! node holds the whole chain, which is how costs are counted (one for the operand, one for every link).

use std::collections::HashSet;
use std::sync::Arc;

use super::Slot;
use crate::document::Key;
use crate::library::Overload;
use crate::library::functions::Function;
use crate::library::messages::Message;
use crate::library::regex::GoRegex;
use crate::syntax::ExprId;
use crate::types::{DeclType, Type};
use crate::value::Constant;

/// A step, with the expression that it implements.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) op: Op,
    pub(crate) at: ExprId,
}

#[derive(Debug)]
pub(crate) enum Op {
    Constant(Constant),
    Attribute(Box<Attribute>),
    Condition(Condition),
    OptionalOr(Box<OptionalOr>),
    Matches(Box<Matches>),
    Call(Box<Call>),
    List(Box<ListPlan>),
    Map(Box<[EntryPlan]>),
    Message(Box<MessagePlan>),
    Fold(Box<Fold>),
}

/// What is true or false and nothing else.
#[derive(Debug)]
pub(crate) enum Condition {
    /// Two terms or more.
    And(Box<[Step]>),
    Or(Box<[Step]>),
    Not(Box<Step>),
    Equal(Box<Equal>),
    EqualConstant(Box<EqualConstant>),
    Member(Box<Member>),
    KeyIn(Box<KeyIn>),
}

impl From<Condition> for Op {
    fn from(condition: Condition) -> Self {
        Self::Condition(condition)
    }
}

/// An operand followed by selections.
#[derive(Debug)]
pub(crate) struct Attribute {
    pub(crate) root: Root,
    /// The expression of the root.
    pub(crate) at: ExprId,
    pub(crate) qualifiers: Vec<Qualifier>,
    /// The last qualifier is tested for presence only (`has`).
    pub(crate) is_test: bool,
}

impl Attribute {
    /// Returns the expression of the whole chain.
    pub(crate) fn whole(&self) -> ExprId {
        self.qualifiers.last().map_or(self.at, |last| last.at)
    }
}

#[derive(Debug)]
pub(crate) enum Root {
    Variable(Slot),
    /// A variable of a comprehension.
    Local(Local),
    /// A name without a variable, in an expression that was not checked.
    Undeclared(Box<str>),
    Step(Box<Step>),
    /// `c ? a : b`. A branch that is an attribute is read without the cost of its operand, as cel-go does.
    Conditional(Box<(Step, Attribute, Attribute)>),
}

/// The number of a comprehension's variable.
pub(crate) type Local = u16;

#[derive(Debug)]
pub(crate) struct Qualifier {
    pub(crate) key: QualifierKey,
    /// The selection that ends here.
    pub(crate) at: ExprId,
    /// Written `?`: an absent value ends the chain with an empty optional.
    pub(crate) is_optional: bool,
}

#[derive(Debug)]
pub(crate) enum QualifierKey {
    /// Attributes that select the same field share it, by which they know that they do.
    Field(Arc<Field>),
    /// A key that is no string.
    Constant(Constant),
    /// An index that is an attribute itself, read without the cost of its operand.
    Attribute(Attribute),
    Step(Step),
}

/// A constant string key, with everything that looking it up needs.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: Box<str>,
    pub(crate) hash: u32,
    /// The operand's declared type and the field's index in it, if the checker knows the type.
    pub(crate) declared: Option<(Arc<DeclType>, usize)>,
}

impl Field {
    /// What a lookup compares.
    #[inline]
    pub(crate) const fn key(&self) -> Key<'_> {
        Key::with_hash(&self.name, self.hash)
    }
}

/// `==` or `!=`.
#[derive(Debug)]
pub(crate) struct Equal {
    pub(crate) operands: [Step; 2],
    pub(crate) is_negated: bool,
}

/// `==` or `!=` with a constant scalar.
#[derive(Debug)]
pub(crate) struct EqualConstant {
    pub(crate) operand: Step,
    pub(crate) constant: Constant,
    pub(crate) is_negated: bool,
}

/// `or` and `orValue` of optionals.
#[derive(Debug)]
pub(crate) struct OptionalOr {
    pub(crate) operands: [Step; 2],
    /// `orValue`: the result is the value inside.
    pub(crate) unwraps: bool,
}

/// `in` with a list of constant scalars.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) operand: Step,
    pub(crate) strings: HashSet<Box<str>>,
    pub(crate) others: Box<[Constant]>,
}

/// `in` with a constant string, where the right side may be a map.
#[derive(Debug)]
pub(crate) struct KeyIn {
    pub(crate) name: Box<str>,
    pub(crate) hash: u32,
    /// The call as any other, for right sides that are no maps of a document.
    pub(crate) call: Call,
}

/// `matches` with a constant pattern.
#[derive(Debug)]
pub(crate) struct Matches {
    /// The string and the pattern.
    pub(crate) operands: Box<[Step]>,
    pub(crate) regex: GoRegex,
    pub(crate) row: &'static Overload,
}

/// A call of a library function.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) target: Target,
    pub(crate) args: Box<[Step]>,
    /// Arguments are evaluated until the first error, and an error before the last leaves the call unpaid.
    pub(crate) stops_at_error: bool,
    pub(crate) meter: Meter,
    /// The pattern was compiled ahead.
    pub(crate) has_constant_pattern: bool,
}

/// What the meter of a call cannot count when it is an error: cel-go's panics then, which ends the evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meter {
    Any,
    /// Every argument.
    List,
    /// The second argument.
    Depth,
}

#[derive(Debug)]
pub(crate) enum Target {
    /// The overload and the argument types are known.
    Known(&'static Overload),
    /// The overload is known; whether the arguments fit is not.
    Guarded(&'static Overload, Arc<Function>),
    /// The arguments choose.
    Dynamic(Arc<Function>),
    /// There is no such function, in an expression that was not checked.
    Unknown(Box<str>),
}

/// A list literal.
#[derive(Debug)]
pub(crate) struct ListPlan {
    pub(crate) elements: Box<[Step]>,
    /// Beside each element: written `?`.
    pub(crate) optional: Box<[bool]>,
}

/// An entry of a map literal.
#[derive(Debug)]
pub(crate) struct EntryPlan {
    pub(crate) key: Step,
    pub(crate) value: Step,
    pub(crate) is_optional: bool,
}

/// A message literal.
#[derive(Debug)]
pub(crate) struct MessagePlan {
    pub(crate) makes: Makes,
    pub(crate) fields: Box<[FieldPlan]>,
}

/// What a literal makes.
#[derive(Debug)]
pub(crate) enum Makes {
    Message(&'static Message),
    /// What mutations make, of this type.
    Object(Type),
}

/// A field that a message literal sets.
#[derive(Debug)]
pub(crate) struct FieldPlan {
    pub(crate) field: Box<str>,
    pub(crate) value: Step,
    pub(crate) is_optional: bool,
}

/// A comprehension.
#[derive(Debug)]
pub(crate) struct Fold {
    pub(crate) range: Step,
    pub(crate) first: Local,
    /// For two-variable macros: the value, while `first` is the index or key.
    pub(crate) second: Option<Local>,
    pub(crate) accumulator: Local,
    pub(crate) kind: FoldKind,
    /// Whether the initial empty list or map of the accumulator must be charged when it is first read, since it is not folded.
    pub(crate) pays_start: bool,
}

/// The macros, recognised by the structure of their expansion, and any other fold.
#[derive(Debug)]
pub(crate) enum FoldKind {
    All(Step),
    Exists(Step),
    ExistsOne(Step),
    Collect(Collect),
    CollectMap(CollectMap),
    General(Box<General>),
}

/// `map`, `filter`, `transformList`.
#[derive(Debug)]
pub(crate) struct Collect {
    pub(crate) filter: Option<Step>,
    pub(crate) element: Step,
    /// Whether the one-element list that is appended must be charged, since it is not folded.
    pub(crate) pays_list: bool,
}

/// `transformMap` and `transformMapEntry`.
#[derive(Debug)]
pub(crate) struct CollectMap {
    pub(crate) filter: Option<Step>,
    pub(crate) added: Added,
}

/// What every round adds to a map.
#[derive(Debug)]
pub(crate) enum Added {
    Entry {
        key: Step,
        value: Step,
    },
    /// A map, whose entries are added.
    Entries(Step),
}

#[derive(Debug)]
pub(crate) struct General {
    /// Evaluated when the accumulator is first read.
    pub(crate) init: Step,
    pub(crate) condition: Step,
    pub(crate) step: Step,
    pub(crate) result: Step,
}
