//! Kubernetes CEL.
