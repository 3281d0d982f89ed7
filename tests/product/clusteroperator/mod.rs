//! Priming of ClusterOperators against the embedded API server, with the shipped definition and the roles of `deploy/rbac.yaml`, and the
//! gate that waits for them.

mod bad_input;
mod bench;
mod canaries;
mod config_map;
mod gate;
mod leaders;
mod metrics;
mod payload;
mod priming;
mod races;
mod requests;
mod roles;
mod waiting;
