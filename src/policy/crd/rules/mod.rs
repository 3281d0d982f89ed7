//! `x-kubernetes-validations`: rules compiled once for a schema, and evaluated over a new and an old object.
//!
//! ```text
//! Schema ──decl──► DeclType ──compile──► CompiledRule ─┐
//!        ──tree──► RuleNode (rules, items, properties, allOf) ──evaluate──► Findings (errors, warnings, budget)
//! ```
//!
//! The counterpart of apiextensions `pkg/apiserver/schema/cel/{compilation,validation}.go`. Whether rules may be
//! registered is decided by `super::registration`.

pub mod compile;
pub mod decl;
mod evaluate;
mod message;
mod tree;
mod variables;

pub use evaluate::{Findings, Limits, Recorder, Subject};
pub use tree::RuleTree;
