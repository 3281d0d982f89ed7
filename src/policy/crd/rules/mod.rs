//! Compiles `x-kubernetes-validations` once per schema, and evaluates them on a new and an old object.
//!
//! ```text
//! Schema ──decl──► DeclType ──compile──► CompiledRule ─┐
//!        ──tree──► RuleNode (rules, items, properties, allOf) ──evaluate──► Findings (errors, warnings, budget)
//! ```
//!
//! The counterpart of apiextensions `pkg/apiserver/schema/cel/{compilation,validation}.go`. Whether rules may be
//! registered is decided by `super::registration`.
//!
//! ```
//! use std::sync::Arc;
//!
//! use admit_cel::PatternSum;
//! use admit_policy::Path;
//! use admit_policy::crd::rules::{
//!     Limits, Modes, RuleEnv, RuleTree, Subject, Subscripts, decl_type, resolve_field_path,
//! };
//! use admit_policy::schema;
//! use serde_json::json;
//!
//! let schema = schema::parse(
//!     &json!({
//!         "type": "object",
//!         "properties": {"min": {"type": "integer"}, "max": {"type": "integer"}},
//!         "x-kubernetes-validations": [{"rule": "self.min <= self.max", "message": "none left"}],
//!     }),
//!     &Path::Nil,
//! )
//! .unwrap();
//!
//! // All rules of a schema, on one value.
//! let rules = RuleTree::compile(&schema, false);
//! assert!(!rules.is_empty() && rules.expressions()[0].1 == "self.min <= self.max");
//! assert_eq!(RuleTree::compile_every_level(&schema, false).expressions().len(), 1);
//! let (new, path) = (json!({"min": 3, "max": 1}), Path::Nil);
//! let subject = Subject { schema: &schema, path: &path, new: &new, old: None, ratchet: true, recorder: None };
//! let findings = rules.evaluate(&subject, &Limits::default());
//! assert_eq!(findings.errors.into_vec()[0].detail, "none left");
//!
//! // One rule by itself, with its greatest cost.
//! let decl = decl_type(&schema, false).unwrap();
//! let env = RuleEnv::new(&decl);
//! assert!(env.max_cardinality() > 1, "nothing says how often such a value occurs in an object");
//! let rule = env.compile(&schema.rules[0], &schema, Modes::NEW);
//! assert!(rule.program.is_some_and(|compiled| compiled.is_ok_and(|compiled| compiled.max_cost > 0)));
//! assert!(env.env(&schema.rules[0], admit_cel::Mode::New).variables().eq(["self", "oldSelf"]));
//! assert!(env.checked(&schema.rules[0]).is_ok_and(|checked| checked.uses_variable("self")));
//! let mut patterns = PatternSum::default();
//! let rule = env.compile_among(&schema.rules[0], &schema, Modes::NEW, &mut patterns);
//! assert!(!rule.uses_old_self && patterns.count() == 0);
//! let found = resolve_field_path(".max", &schema, Subscripts::Allowed).unwrap();
//! assert_eq!((found.text.as_str(), found.schema.is_some()), ("max", true));
//! ```

pub(crate) mod compile;
pub(crate) mod decl;
mod evaluate;
pub(in crate::crd) mod memory;
mod message;
mod problem;
mod replaced;
mod tree;
mod variables;

pub use compile::{Compiled, CompiledRule, Modes, RuleEnv};
pub use decl::decl_type;
pub use evaluate::{Findings, Limits, Recorder, Subject};
pub use memory::{Memory, remembering};
pub use problem::{ExpressionProblem, RuleError};
pub(crate) use replaced::RulePlace;
pub use tree::RuleTree;

pub use super::field_path::{FieldPathError, Resolved, Subscripts, resolve as resolve_field_path};
