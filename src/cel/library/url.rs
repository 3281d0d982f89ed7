//! URLs as Go parses them.

/// The value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Url<'a> {
    pub text: &'a str,
}
