//! `ClusterOperator`, as the kit has it, which reports in it.

pub use crate::controllers::kit::operator::crd::*;
