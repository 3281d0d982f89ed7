//! An embedded Kubernetes API server: a tower service over a versioned store.

pub mod resources;
