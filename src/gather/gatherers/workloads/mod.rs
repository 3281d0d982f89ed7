//! What runs on a cluster without saying what it is called: Helm charts and shapes of pods by namespace, whose names are hashed.

pub(super) mod helm_charts;
mod images;
pub(super) mod pods;
mod runtimes;
mod shape;
