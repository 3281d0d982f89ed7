//! The Rust type of `ClusterOperator`, re-exported from the kit, which reports in it.

pub use crate::controllers::kit::operator::crd::*;
