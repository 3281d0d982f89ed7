//! What policies and definitions mean beyond one object. Pure functions: documents and logs in, findings out.
//!
//! ```text
//! documents ──┬─ boundaries   where judging may come out differently
//!             └─ judge        one engine run for each group of releases between ──► Report
//! objects ────── scan         one result for each object and policy ──► Reports
//! PolicySet ──── attack       what is denied, and what is admitted beside it ──► pairs
//! log ────────── replay       one decision for each request ──► Report
//! rules, cases ── mutate ─── changes of rules that no case sees, each with the case that would ──► Fate, Settled
//! PolicySet, field ──states── what holds for all objects, and what is admitted of those that are tried ──► Picture
//! ```
//!
//! | module | decides | may use |
//! |---|---|---|
//! | [`attack`] | what gets past a policy: pairs of a denied request and an admitted one that reaches the same | reads |
//! | [`mutate`] | which small changes of rules no test case sees | prove, reads |
//! | [`prove`] | what holds for all objects of a kind, by a solver that the caller runs | nothing of ours |
//! | `reads` | what an expression looks at | nothing of ours |
//! | [`releases`] | which Kubernetes releases take a document, and why others do not | nothing of ours |
//! | [`replay`] | what policies would have decided about the requests of an audit log | nothing of ours |
//! | [`scan`] | what policies say of the objects that stand in a cluster | replay |
//! | [`states`] | which values of a field may follow one another | reads |
//!
//! Every verdict is that of admit-policy, which is told the release ([`admit_policy::release`]); nothing here has an idea of its
//! own of what an expression means.
#![deny(missing_docs)]
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

pub mod attack;
pub mod mutate;
pub mod prove;
mod reads;
pub mod releases;
pub mod replay;
pub mod scan;
pub mod states;

/// The examples of the readme.
#[cfg(doctest)]
#[doc = include_str!("README.md")]
struct Readme;
