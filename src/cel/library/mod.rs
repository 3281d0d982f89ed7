//! Lists every function of the language, one [`Overload`] row each: the checker, the planner, the estimator, the cost counter and the
//! documentation use nothing else.
//!
//! | part | holds |
//! |---|---|
//! | [`functions`] | the rows one environment offers, by function name, with parsed signatures; choice by argument types |
//! | [`signature`] | signatures in CEL notation, parsed; whether values fit them |
//! | [`cost`] | the shapes of cost that rows share |
//! | [`history`] | what the builds of other releases have in the place of rows, each with its source |
//! | `standard` | operators, conversions, strings, times: the language itself |
//! | `extensions` | cel-go's string, list, set and optional libraries |
//! | `kubernetes` | quantities, addresses, URLs, versions, named formats, authorization, list functions |
//! | `messages` | the protocol buffer messages that expressions may construct |
//! | `regex` | regular expressions in Go's syntax |
//!
//! A row decides nothing about evaluation order: `&&`, `||`, `?:`, `==`, indexing and optional selection have rows for
//! the checker, and the planner makes nodes of its own of them.

mod context;
pub(crate) mod cost;
pub(crate) mod extensions;
pub(crate) mod functions;
pub(crate) mod history;
mod kubernetes;
pub(crate) mod literal;
pub(crate) mod messages;
pub(crate) mod regex;
pub(crate) mod signature;
mod standard;
#[cfg(test)]
mod tests;

pub use context::Context;
pub(crate) use extensions::already_there;
pub use functions::Extra;
pub(crate) use functions::{Declared, Functions, Offer};
pub use history::{BuildChange, build_changes};
pub(crate) use signature::Signature;
pub use signature::SignatureError;

use crate::cost::{CallEstimate, Operand};
use crate::value::{EvalError, Value};

/// A function's body. `args` has the receiver first for member calls.
pub type Implementation = for<'a> fn(&Context<'a>, &[Value<'a>]) -> Result<Value<'a>, EvalError>;

/// Cost beyond the arguments', and the size of the result, from the sizes of the arguments.
pub type Estimate = fn(&[Operand<'_>]) -> CallEstimate;

/// The cost of a call beyond its arguments', from the arguments and the result. A null represents an argument or result that is an
/// error.
pub type Cost = for<'a> fn(&[Value<'a>], &Value<'a>) -> u64;

/// A Kubernetes minor version: `V(1, 31)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u16, pub u16);

/// An overload of a function. Kubernetes' ones are in [`overloads`].
///
/// ```
/// use admit_cel::syntax::Literal;
/// use admit_cel::{Bounds, CallEstimate, Operand, Overload, Type, Value, Version};
///
/// // Costs as much as the text is long.
/// let row = Overload::new("shout", "string.shout() -> string", |_, args| Ok(args[0]), "The text itself.").costs(
///     |operands| CallEstimate::of_cost(operands[0].size_or_unbounded()),
///     |args, _| match args {
///         [Value::String(text)] => text.len() as u64,
///         _ => 1,
///     },
/// );
/// assert_eq!((row.cost)(&[Value::String("four")], &Value::Null), 4);
/// assert!(row.is_in(Version(1, 30)));
/// let four = Literal::String("four".into());
/// let text = Operand { size: Some(Bounds::exactly(4)), ty: &Type::String, items: None, literal: Some(&four) };
/// assert_eq!((row.estimate)(&[text]).cost, Bounds::exactly(4));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Overload {
    /// cel-go's overload id, which error messages and references use: `add_int64`.
    pub id: &'static str,
    /// `function` with its signature in CEL notation: `size(string) -> int`, `list(T).sort() -> list(T)`,
    /// `_+_(int, int) -> int`. Single capitals are type parameters.
    pub signature: &'static str,
    /// The body.
    pub implementation: Implementation,
    /// The estimated cost of a call.
    pub estimate: Estimate,
    /// What a call did cost, where the checker decided for this overload.
    pub cost: Cost,
    /// The cost where the checker left more than one overload, so that the meter knows only the function's name.
    pub dynamic_cost: Cost,
    /// The first Kubernetes minor version that offers it.
    pub since: Version,
    /// The first Kubernetes minor version that offers it no longer.
    pub until: Option<Version>,
    /// A line for the reference page.
    pub doc: &'static str,
}

impl Overload {
    /// A row of constant cost that every version offers.
    #[must_use]
    pub const fn new(
        id: &'static str,
        signature: &'static str,
        implementation: Implementation,
        doc: &'static str,
    ) -> Self {
        Self {
            id,
            signature,
            implementation,
            estimate: cost::estimate_one,
            cost: cost::one,
            dynamic_cost: cost::one,
            since: Version(1, 0),
            until: None,
            doc,
        }
    }

    /// A cost that the meter knows by the overload: a call whose overload the checker left open costs one.
    #[must_use]
    pub const fn costs(mut self, estimate: Estimate, cost: Cost) -> Self {
        self.estimate = estimate;
        self.cost = cost;
        self
    }

    /// A cost that the meter knows by the function's name.
    pub(crate) const fn costs_by_name(mut self, estimate: Estimate, cost: Cost) -> Self {
        self.estimate = estimate;
        self.cost = cost;
        self.dynamic_cost = cost;
        self
    }

    /// The cost if the checker left several overloads, and the cost counter distinguishes overloads by this name.
    pub(crate) const fn costs_ambiguous(mut self, cost: Cost) -> Self {
        self.dynamic_cost = cost;
        self
    }

    pub(crate) const fn since(mut self, version: Version) -> Self {
        self.since = version;
        self
    }

    /// Whether an environment of this version offers the row.
    #[must_use]
    pub fn is_in(&self, version: Version) -> bool {
        self.since <= version && self.until.is_none_or(|until| version < until)
    }
}

/// Every row of the libraries that Kubernetes environments hold, in the order of their declaration.
///
/// ```
/// let row = admit_cel::overloads().find(|row| row.id == "string_to_timestamp").unwrap();
/// assert!(row.takes_text("2026-01-02T03:04:05Z") && !row.takes_text("tomorrow") && !row.takes_int(1));
/// let row = admit_cel::overloads().find(|row| row.id == "quantity_is_less_than").unwrap();
/// assert!(row.is_in(admit_cel::Version(1, 36)) && !row.is_in(admit_cel::Version(1, 27)));
/// ```
pub fn overloads() -> impl Iterator<Item = &'static Overload> {
    [standard::TABLES, kubernetes::TABLES, extensions::TABLES].into_iter().flatten().copied().flatten()
}

/// The error for arguments that the signature does not allow. Rows are never called with such arguments; the types of this code just
/// cannot express that.
pub(crate) const fn mismatch<'a>() -> Result<Value<'a>, EvalError> {
    Err(EvalError::NoSuchOverload)
}

/// The implementation of functions that the planner turns into steps.
pub(crate) fn planned<'a>(_: &Context<'a>, _: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    mismatch()
}
