//! An embedded Kubernetes API server: a tower service over a versioned store.

mod digest;
pub mod discovery;
pub mod resources;
