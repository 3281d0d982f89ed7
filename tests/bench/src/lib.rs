//! Defines what the benchmarks and the allocation tests of this package measure: typical Kubernetes expressions with their
//! documents, and the two engines behind one interface.
//!
//! | part | decides |
//! |---|---|
//! | [`cases`] | the expressions, and the documents they are evaluated on |
//! | [`ours`] | one evaluation by admit-cel, from a `serde_json::Value` or from JSON text |
//! | [`peer`] | one evaluation by the `cel` crate, from a `serde_json::Value` |
//! | [`policies`] | policies, a request that they decide, and their environment |
//!
//! `scripts/bench` runs everything and prints the ratios; `cargo test -p bench` counts allocations.

pub mod cases;
pub mod ours;
pub mod peer;
pub mod policies;
