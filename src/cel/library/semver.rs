//! Semantic versions.

/// The value.
#[derive(Clone, Debug, PartialEq)]
pub struct Semver {}
