//! `x-kubernetes-validations`: rules compiled once for a schema, and evaluated over a new and an old object.
//!
//! ```text
//! Schema ──decl──► DeclType ──compile──► CompiledRule ─┐
//!        ──tree──► RuleNode (rules, items, properties, allOf) ──evaluate──► Findings (errors, warnings, budget)
//! ```
//!
//! The counterpart of apiextensions `pkg/apiserver/schema/cel/{compilation,validation}.go`. Whether rules may be
//! registered is decided by `super::registration`.

pub(crate) mod compile;
pub(crate) mod decl;
mod evaluate;
mod message;
mod tree;
mod variables;

pub use compile::{Compiled, CompiledRule, ExpressionProblem, Modes, RuleEnv, RuleError};
pub use decl::decl_type;
pub use evaluate::{Findings, Limits, Recorder, Subject};
pub use tree::RuleTree;

pub use super::field_path::{FieldPathError, Resolved, Subscripts, resolve as resolve_field_path};
