//! Contains the controllers of the objects that admit guards, on a shared kit.
//!
//! | module | decides | may use |
//! |---|---|---|
//! | [`kit`] | what every controller needs, and nothing about any kind | telemetry |
//! | [`datagather`] | when data is gathered, and what the status of a DataGather says | kit, gather, outside, telemetry, admit-apimachinery |
//! | [`mustgather`] | the Job of a MustGather, and its status | kit, gather, telemetry, admit-apimachinery |
//! | [`observability`] | the status of an ObservabilityAddon, here and on the hub | kit, outside, telemetry |
//! | [`clusteroperator`] | which ClusterOperators are created before their operators report | kit, outside, telemetry, admit-policy |
//! | [`cyndi`] | tables of hosts, their connectors, and whether they are valid | kit, gather, outside, telemetry, admit-apimachinery |
//! | [`scan`] | which reports exist in the cluster, and when they are updated | kit |
//! | [`policies`] | what decisions need from the cluster, and whether it is up to date | kit, telemetry, admit-policy, admit-apimachinery |
//!
//! No controller depends on another one: a further one is a folder on top of the kit.

pub mod clusteroperator;
pub mod cyndi;
pub mod datagather;
pub mod kit;
pub mod mustgather;
pub mod observability;
pub mod policies;
pub mod scan;
