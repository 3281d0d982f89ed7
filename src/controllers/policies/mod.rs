//! Caches what decisions need from the cluster: kept up to date by watches, and marked when it may not be.
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
