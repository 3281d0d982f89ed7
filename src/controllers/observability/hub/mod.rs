//! Synchronizes with the hub: another API server, or another namespace of this one, in which this cluster's add-on is requested and
//! shown.
//!
//! ```text
//!  kubeconfig ──► reach ──► link ──┬─ watch of the hub's object ──► replicate: spec down, status up, finalizer
//!      ▲                           │
//!      └── changed, refused, no answer: a new connection, after a growing wait
//!
//!  on the hub itself: mirror ──► ManagedClusterAddOn; lets objects go whose cluster is gone
//! ```
//!
//! Guarantees: the spoke continues whatever happens to the hub; what the hub lost is restored; nothing is written to the
//! hub that it has already.

mod error;
mod link;
pub(super) mod mirror;
mod reach;
mod redact;
mod replicate;
mod spoke;

use std::path::PathBuf;

pub use error::HubError;
pub(super) use link::Link;

/// The address of the hub: a kubeconfig and a namespace.
#[derive(Clone, Debug)]
pub struct HubSettings {
    /// The namespace on the hub that belongs to this cluster.
    pub namespace: String,
    /// The kubeconfig of the hub; None if it is the server that the controllers use.
    pub kubeconfig: Option<PathBuf>,
}
