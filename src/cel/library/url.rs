//! URLs as Go parses them.

/// The value.
#[derive(Clone, Debug, PartialEq)]
pub struct Url {}
