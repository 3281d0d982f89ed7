//! Defines the errors of parsing JSON.

use std::fmt;

use admit_apimachinery::weight::TooHeavy;

/// Why a text is not accepted.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum JsonError {
    /// The first mistake.
    Syntax(SyntaxError),
    TooHeavy(TooHeavy),
}

/// A syntax error, in Go's words: `invalid character '}' looking for beginning of value`.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum SyntaxError {
    /// The text ends inside its value.
    #[error("unexpected end of JSON input")]
    End,
    /// An unexpected byte.
    #[error("invalid character {} {place}", shown(*.byte))]
    Unexpected {
        byte: u8,
        /// `in string literal`
        place: &'static str,
    },
    /// A byte within `true`, `false` or `null` that is not theirs.
    #[error("invalid character {} in literal {literal} (expecting '{expected}')", shown(*.byte))]
    Literal { byte: u8, literal: &'static str, expected: char },
    /// A number that no double holds.
    #[error("json: cannot unmarshal number {0} into Go value of type float64")]
    Number(String),
}

impl SyntaxError {
    /// Builds the error for an unexpected byte.
    pub(super) const fn at(byte: u8, place: &'static str) -> Self {
        Self::Unexpected { byte, place }
    }
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax(why) => why.fmt(f),
            Self::TooHeavy(limit) => limit.fmt(f),
        }
    }
}

impl std::error::Error for JsonError {}

impl From<SyntaxError> for JsonError {
    fn from(why: SyntaxError) -> Self {
        Self::Syntax(why)
    }
}

impl From<TooHeavy> for JsonError {
    fn from(limit: TooHeavy) -> Self {
        Self::TooHeavy(limit)
    }
}

fn shown(byte: u8) -> String {
    match byte {
        b'\'' => "'\\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        b'\\' => "'\\\\'".to_owned(),
        b'\n' => "'\\n'".to_owned(),
        b'\r' => "'\\r'".to_owned(),
        b'\t' => "'\\t'".to_owned(),
        0..=0x1f | 0x7f => format!("'\\x{byte:02x}'"),
        0x80..=0x9f => format!("'\\u{byte:04x}'"),
        other => format!("'{}'", char::from(other)),
    }
}
