//! Kubernetes quantities.

/// The value.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantity {}
