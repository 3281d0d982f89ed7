//! Semantic versions.

/// The value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Semver<'a> {
    pub text: &'a str,
}
