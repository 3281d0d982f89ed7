//! Compiles and evaluates admission policies and their bindings as kube-apiserver does. [`mutating`] is about mutating ones; the rest
//! of this module is about validating ones, and what both share.
//!
//! ```text
//! document ──Policy::compile──► Policy  ─┐
//! document ──Binding::compile─► Binding ─┼─ decide(request, host) ──► outcomes, denials, warnings, annotations
//! Host: namespaces, params, authorizer  ─┘
//! ```
//!
//! Compiling is the validation that kube-apiserver does when a policy is created: every mistake of a document is
//! reported, in its words, and a policy that compiled needs no further checks.

mod audit_annotations;
mod authorizer;
mod binding;
mod collector;
mod conditions;
mod consequence;
mod decide;
mod evaluate;
mod expression;
mod missed;
mod mutating;
mod namespace;
mod objects;
mod param_kind;
mod params;
mod policy;
mod replaced;
mod request_value;
mod scope;
mod session;
mod stored;
mod type_check;
mod types;

pub use self::binding::{Binding, NotFoundAction, ParamRef, ParamSelector};
pub(crate) use self::collector::{Collector, Workspace};
pub use self::conditions::MatchConditions;
pub(crate) use self::decide::decide;
pub use self::evaluate::ConditionsError;
pub use self::missed::Missed;
pub(crate) use self::missed::missed;
pub use self::mutating::{Mutated, MutatingPolicy, Reinvocation, Schemas, Unmade};
pub(crate) use self::mutating::{Pass, mutate};
pub use self::policy::{FailurePolicy, Policy};
pub use self::scope::{PolicyPart, PolicyScope};
pub use self::session::{ExpressionError, OutOfBudget};
pub(crate) use self::stored::Stored;
pub use self::type_check::{TypeWarning, Types};
pub(crate) use self::types::with_object_meta;
