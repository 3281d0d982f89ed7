//! Gathers what runs on a cluster without revealing names: Helm charts and shapes of Pods by namespace, whose names are hashed.

pub(super) mod helm_charts;
mod images;
pub(super) mod pods;
mod runtimes;
mod shape;
