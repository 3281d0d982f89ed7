//! An embedded Kubernetes API server: a tower service over a versioned store.

pub mod builtin;
mod digest;
pub mod discovery;
pub mod openapi;
pub mod patch;
pub mod resources;
pub mod status;
pub mod store;
pub mod table;
