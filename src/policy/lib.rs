//! Compiles policy documents into a [`PolicySet`] and decides requests with it. Pure functions, no I/O.
//!
//! ```text
//! documents ──PolicySet::load──► PolicySet ──decide(Request, Host)──► Decision
//!             every mistake of         matching, params, CEL             denial · warnings · annotations
//!             every document                                             and what each rule said
//! ```
//!
//! | module | decides | may use |
//! |---|---|---|
//! | `deadline` | when long work ends before it is done | nothing of ours |
//! | `read` | texts to JSON, manifests with positions, typed fields, paths | nothing of ours |
//! | `patch` | JSON patches and merge patches | deadline, read |
//! | `request` | what is asked: a request, a review, and whom to ask about access, namespaces and params | deadline, read |
//! | `report` | what was decided, and what expressions did meanwhile | deadline, request |
//! | `schema` | defaults, pruning and validation by a structural schema, metadata of objects | deadline, read |
//! | `crd` | which definitions may be registered, and what they make of custom resources | deadline, read, report, schema |
//! | `matching` | which requests a policy, a binding or a webhook matches | deadline, read, request |
//! | `vap` | what a ValidatingAdmissionPolicy says of a request | deadline, matching, read, report, request, schema |
//! | `webhook` | whether a webhook configuration is valid | matching, read, schema, vap |
//! | `devices` | whether an expression selects devices | nothing of ours |
//! | `set` | all policies with their bindings and documents; loading, and the decision | crd, deadline, matching, read, report, request, schema, vap, webhook |
//! | `tools` | test suites, lint, applied manifests, generated suites, single expressions | crd, matching, patch, read, report, request, schema, set, vap |
//!
//! `crd` and `vap` do not know each other.
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

pub mod crd;
mod deadline;
pub mod devices;
pub mod matching;
pub mod patch;
mod read;
mod report;
pub mod request;
pub mod schema;
mod set;
mod tools;
pub mod vap;
pub mod webhook;

pub use self::deadline::{Deadline, Interrupted, Pace, asking, unasked};
pub use self::read::decode::DecodeError;
pub use self::read::{json, manifest, object, path};
pub use self::report::decision::Decision;
pub use self::report::options::EvalOptions;
pub use self::report::recording::Recording;
pub use self::report::{decision, explanation, recording};
pub use self::request::{Request, access, host, rbac, review};
pub use self::set::documents::{self, Documents};
pub use self::set::load::LoadOptions;
pub use self::set::{LoadErrorKind, PolicySet, PolicySetBuilder};
pub use self::tools::{apply, eval, init, lint, suite};
