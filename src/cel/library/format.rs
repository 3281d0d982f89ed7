//! Named string formats (`format.dns1123Label()`).

/// The value.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedFormat {}
