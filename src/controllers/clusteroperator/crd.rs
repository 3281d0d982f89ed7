//! Re-exports the Rust type of `ClusterOperator` from the kit, which reports in it.

pub use crate::controllers::kit::operator::crd::*;
