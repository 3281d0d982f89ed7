//! Defines the errors of parsing a document.

use std::fmt;

use admit_apimachinery::go::quote;

/// Why a text is not a document within the limits, and at which position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadError {
    /// Bytes before the place.
    pub offset: usize,
    /// What is wrong there.
    pub kind: ReadErrorKind,
}

/// What is wrong with a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadErrorKind {
    /// The text ends inside a value.
    UnexpectedEnd,
    /// An unexpected character.
    UnexpectedCharacter {
        /// The character.
        found: char,
        /// What should.
        expected: &'static str,
    },
    /// Text follows the document.
    TrailingText,
    /// A backslash with something JSON does not know.
    InvalidEscape,
    /// A control character within a string, unescaped.
    ControlCharacter,
    /// A number beyond every double.
    NumberOutOfRange,
    /// A duplicate property, where these are rejected.
    DuplicateKey(Box<str>),
    /// More bytes than allowed.
    TooLong {
        /// Bytes that are allowed.
        limit: usize,
    },
    /// Deeper nesting than allowed.
    TooDeep {
        /// Levels that are allowed.
        limit: usize,
    },
    /// More values than allowed.
    TooManyValues {
        /// Values that are allowed.
        limit: usize,
    },
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            ReadErrorKind::UnexpectedEnd => f.write_str("unexpected end of JSON input"),
            ReadErrorKind::UnexpectedCharacter { found, expected } => {
                write!(f, "invalid character {found:?}, expected {expected}")
            }
            ReadErrorKind::TrailingText => f.write_str("text after the document"),
            ReadErrorKind::InvalidEscape => f.write_str("invalid escape in string"),
            ReadErrorKind::ControlCharacter => f.write_str("control character in string"),
            ReadErrorKind::NumberOutOfRange => f.write_str("number out of range"),
            ReadErrorKind::DuplicateKey(key) => write!(f, "duplicate field {}", quote(key)),
            ReadErrorKind::TooLong { limit } => write!(f, "document longer than {limit} bytes"),
            ReadErrorKind::TooDeep { limit } => write!(f, "document nested deeper than {limit}"),
            ReadErrorKind::TooManyValues { limit } => write!(f, "document of more than {limit} values"),
        }?;
        write!(f, " at byte {}", self.offset)
    }
}

impl std::error::Error for ReadError {}
