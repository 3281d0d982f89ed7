//! Implements the endpoint operator's part: reports the state of the collectors' Deployments in the conditions of the components.
//!
//! ```text
//!  Deployments, Prometheus' Service ──► Workloads ──┐
//!  spec.enableMetrics ──────────────────────────────┴─ plan ──► a word, told once ──► component condition
//! ```
//!
//! Another program may roll the collectors out; this one only observes the result. What was reported is stored in
//! annotations of the add-on, so that a restart does not repeat a report after the collectors have sent newer
//! ones.

mod operator;
pub(super) mod plan;
mod workloads;

pub use operator::Error;
pub(super) use operator::Operator;
pub(super) use workloads::Workloads;

/// The Deployments of both collectors, in the namespace of the add-on.
pub const DEPLOYMENTS: [&str; 2] = ["metrics-collector-deployment", "uwl-metrics-collector-deployment"];

/// The settings of the endpoint operator's part.
#[derive(Clone, Debug, Default)]
pub struct EndpointSettings {
    /// Namespace and name of the Service of Prometheus, without which metrics are not supported. If None, they always are.
    pub prometheus: Option<(String, String)>,
}
