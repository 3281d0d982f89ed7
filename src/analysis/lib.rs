//! Analyses policies and definitions beyond a single decision. Pure functions: documents and logs in, findings out.
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
//! | [`attack`] | how a policy can be evaded: pairs of a denied request and an admitted one with the same effect | reads |
//! | [`mutate`] | which small changes of rules no test case detects | prove, reads |
//! | [`prove`] | what holds for all objects of a kind, by a solver that the caller runs | nothing of ours |
//! | `reads` | what an expression reads | nothing of ours |
//! | [`releases`] | which Kubernetes releases accept a document, and why others do not | nothing of ours |
//! | [`replay`] | what policies would have decided on the requests of an audit log | nothing of ours |
//! | [`scan`] | the verdicts of policies on the objects stored in a cluster | replay |
//! | [`states`] | which values of a field may follow one another | reads |
//!
//! Every verdict is that of admit-policy, for a given release ([`admit_policy::release`]); nothing here implements the meaning of
//! expressions a second time, except as terms that are checked against it.
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
