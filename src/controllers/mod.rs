//! The controllers of the objects that admit guards, on a shared kit.

pub mod clusteroperator;
pub mod cyndi;
pub mod datagather;
pub mod kit;
pub mod mustgather;
pub mod observability;
pub mod policies;
