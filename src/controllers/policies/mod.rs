//! Keeps what decisions need from the cluster: published whole on watch channels, so that a reader sees one state.

mod namespaces;

pub use namespaces::publish as publish_namespaces;
