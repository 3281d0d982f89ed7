//! Compiles and runs MutatingAdmissionPolicies and their bindings as kube-apiserver does.
//!
//! ```text
//! document ──MutatingPolicy::compile──► MutatingPolicy ─┐
//! document ──Binding::compile_mutating─► Binding ───────┼─ mutate(request, host, schemas) ──► object, denial, outcomes
//! Schemas: merging, decoding, defaults ─────────────────┘
//! ```
//!
//! | part | decides |
//! |---|---|
//! | `policy` | what is wrong with a document, and what its mutations are |
//! | `run` | which policies with which bindings and params see the object, in which order |
//! | `invocation` | whether one of them sees it, and what its mutations make of it |
//! | `outcomes` | what is told of a run |
//! | `made` | what the value of an expression is as JSON |
//! | `operations` | what a JSON patch makes of an object, in the words of the server's library |
//! | `refusals` | what clients are told when that fails |
//! | `reinvocation` | which of them see the object again when it changed after them |
//! | `schemas` | what is asked of whoever knows the kinds |
//!
//! Matching, params, variables, conditions and budgets are those of validating policies. Read from apiserver
//! `pkg/admission/plugin/policy/mutating` of Kubernetes 1.36.

mod invocation;
mod made;
mod operations;
mod outcomes;
mod policy;
mod refusals;
mod reinvocation;
mod run;
mod schemas;
#[cfg(test)]
mod tests;

pub(crate) use self::invocation::Pass;
pub use self::outcomes::Mutated;
pub use self::policy::MutatingPolicy;
pub use self::reinvocation::Reinvocation;
pub(crate) use self::run::mutate;
pub use self::schemas::{Schemas, Unmade};
