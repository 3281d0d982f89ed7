//! Defines evaluation errors; the messages are cel-go's, because users see them.

use std::fmt;

/// A runtime error. Its message is built only when shown.
///
/// ```
/// use admit_cel::EvalError;
///
/// assert!(EvalError::CostLimitExceeded.is_final());
/// assert!(!EvalError::NoSuchKey("a".into()).is_final(), "`false && x.a` is false all the same");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EvalError {
    /// An integer divided by zero.
    DivisionByZero,
    /// The remainder of a division by zero.
    ModulusByZero,
    /// A result beyond 64 bits, signed.
    IntegerOverflow,
    /// A result beyond 64 bits, unsigned.
    UnsignedOverflow,
    /// A result beyond every double.
    DoubleOverflow,
    /// A span beyond 64 bits of nanoseconds.
    DurationOverflow,
    /// An instant outside the years 1 to 9999.
    TimestampOverflow,
    /// A key or field that is not there.
    NoSuchKey(Box<str>),
    /// A field that the type does not have.
    NoSuchField(Box<str>),
    /// A variable without a value.
    NoSuchAttribute(Box<str>),
    /// Values that no overload of the function takes.
    NoSuchOverload,
    /// A position that the list does not have.
    IndexOutOfBounds(i64),
    /// Any other failure of the data, in cel-go's words.
    Other(Box<str>),
    /// The per-call limit or a shared budget is spent.
    CostLimitExceeded,
    /// The arena is full.
    MemoryLimitExceeded,
    /// The caller's deadline has passed.
    Interrupted,
    /// What makes cel-go give up in mid-evaluation.
    Internal(Box<str>),
}

impl EvalError {
    /// Whether the error ends the evaluation, so that neither `&&`, `||` nor a fold can absorb it.
    #[must_use]
    pub const fn is_final(&self) -> bool {
        matches!(
            self,
            Self::CostLimitExceeded | Self::MemoryLimitExceeded | Self::Interrupted | Self::Internal(_)
        )
    }
}

impl EvalError {
    /// A failure of the data, in these words.
    pub(crate) fn other(text: impl Into<Box<str>>) -> Self {
        Self::Other(text.into())
    }
}

impl fmt::Display for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DivisionByZero => f.write_str("division by zero"),
            Self::ModulusByZero => f.write_str("modulus by zero"),
            Self::IntegerOverflow => f.write_str("integer overflow"),
            Self::UnsignedOverflow => f.write_str("unsigned integer overflow"),
            Self::DoubleOverflow => f.write_str("double overflow"),
            Self::DurationOverflow => f.write_str("duration overflow"),
            Self::TimestampOverflow => f.write_str("timestamp overflow"),
            Self::NoSuchKey(key) => write!(f, "no such key: {key}"),
            Self::NoSuchField(field) => write!(f, "no such field '{field}'"),
            Self::NoSuchAttribute(name) => write!(f, "no such attribute(s): {name}"),
            Self::NoSuchOverload => f.write_str("no such overload"),
            Self::IndexOutOfBounds(index) => write!(f, "index out of bounds: {index}"),
            Self::Other(text) => f.write_str(text),
            Self::CostLimitExceeded => f.write_str("operation cancelled: actual cost limit exceeded"),
            Self::MemoryLimitExceeded => f.write_str("operation cancelled: memory limit exceeded"),
            Self::Internal(what) => write!(f, "internal error: {what}"),
            Self::Interrupted => f.write_str("operation interrupted"),
        }
    }
}

impl std::error::Error for EvalError {}
