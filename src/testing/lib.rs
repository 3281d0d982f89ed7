//! Runs a Kubernetes API server in the process of a test.
//!
//! ```text
//! TestCluster ── client() ──► slot ──► the server of now ◄── fork(), reset()
//!             └─ kubeconfig() ─ TLS ──┘
//! ```
//!
//! | module | decides | may use |
//! |---|---|---|
//! | `slot` | which server answers requests, and when its watches end | nothing of ours |
//! | `port` | how other programs reach it: a port, certificates, a kubeconfig | slot |
//! | `cluster` | when servers are created, forked and reset | port, slot |

mod cluster;
mod port;
mod slot;

pub use admit_apiserver::{AdmissionPlugins, Controllers, Identity};
pub use cluster::{StartError, TestCluster, TestClusterBuilder};
pub use port::PortError;

/// The examples of the readme.
#[cfg(doctest)]
#[doc = include_str!("README.md")]
struct Readme;
