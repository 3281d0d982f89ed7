//! Priming of ClusterOperators against the embedded API server, with the shipped definition and the roles of `deploy/rbac.yaml`, and the
//! gate that waits for them.

mod bench;
mod gate;
mod payload;
mod priming;
mod waiting;
