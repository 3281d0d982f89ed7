//! Keeps what decisions need from the cluster: watched, and honest about not being up to date.
//!
//! ```text
//! Namespaces, CRDs ─┐                             ┌─► Host: namespaces, versions, params, access
//! policies, bindings┼─follow─► Collection ────────┤
//! params by kind   ─┘  list, watch, list again    └─► documents of policies, for whoever compiles them
//! ```

mod access;
mod cluster;
mod collection;
mod definitions;
mod follow;
mod params;

pub use cluster::ClusterCache;
