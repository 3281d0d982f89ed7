//! Keeps what decisions need from the cluster: watched, and honest about not being up to date.

mod cluster;
mod collection;
mod follow;

pub use cluster::ClusterCache;
